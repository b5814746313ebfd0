"""Pictures of tensors over the steps: which numbers are drawn, and what says so."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugRuntimeError, SMDebugValueError

pytest.importorskip("matplotlib")


@pytest.fixture
def trial(run):
    run.collections(losses="loss", weights="weight$")
    losses = [3.0, np.nan, 1.0, np.inf]
    for step, loss in enumerate(losses):
        tensors = {"loss": np.float32(loss), "a.weight": np.full((3, 3), step + 1.0), "_b.weight": np.arange(4.0)}
        run.step(2 * step, tensors, ModeKeys.TRAIN, step * 10)
        run.step(2 * step + 1, {"loss": np.float32(step)}, ModeKeys.EVAL, step)
    return create_trial(str(run.end().root))


def drawn(figure):
    """The lines of a figure by their labels, as steps and numbers; crosses have none."""
    found = {}
    for line in figure.axes[0].lines:
        label = line.get_label()
        found["×" if label.startswith("_child") else label] = (line.get_xdata().tolist(), line.get_ydata().tolist())
    return found


def test_the_losses_are_drawn_by_mode_and_what_is_not_finite_is_a_cross(trial):
    found = drawn(trial.plot())
    assert set(found) == {"loss TRAIN (× NaN or Inf)", "loss EVAL", "×"}
    steps, numbers = found["loss TRAIN (× NaN or Inf)"]
    assert steps == [0, 2, 4, 6]
    np.testing.assert_array_equal(numbers, [3, np.nan, 1, np.nan])
    assert found["×"] == ([2, 6], [1.0, 1.0])
    assert found["loss EVAL"] == ([1, 3, 5, 7], [0, 1, 2, 3])


def test_a_mode_counts_its_own_steps(trial):
    figure = trial.plot(mode=ModeKeys.TRAIN)
    assert figure.axes[0].get_xlabel() == "TRAIN step"
    assert drawn(figure)["loss (× NaN or Inf)"][0] == [0, 10, 20, 30]


def test_larger_tensors_go_by_their_norm_or_by_what_is_asked_for(trial):
    found = drawn(trial.plot(collection="weights"))
    assert found["a.weight"] == ([0, 2, 4, 6], [3, 6, 9, 12])
    # matplotlib leaves out of a legend what begins with an underscore.
    assert " _b.weight" in found
    figure = trial.plot(regex="a.weight", statistic="max", steps=[2, 4])
    assert drawn(figure) == {"a.weight": ([2, 4], [2, 3])}
    assert figure.axes[0].get_ylabel() == "max"


def test_what_is_drawn_may_be_named_first(trial):
    assert drawn(trial.plot("a.weight")) == drawn(trial.plot(regex="a.weight"))


@pytest.mark.parametrize("regex, scale", [("a.weight", "log"), ("loss", "symlog")])
def test_a_logarithmic_axis_has_room_for_zero(trial, regex, scale):
    assert trial.plot(regex=regex, logarithmic=True).axes[0].get_yscale() == scale


def test_a_legend_is_not_longer_than_the_picture(run):
    tensors = {f"loss_{number}": np.float32(1) for number in range(40)}
    run.collections(losses="loss").step(0, tensors).step(1, tensors).end()
    figure = create_trial(str(run.root)).plot()
    assert len(figure.axes[0].lines) == 40
    (legend,) = figure.legends
    assert (len(legend.get_texts()), legend.get_title().get_text()) == (12, "and 28 more")


def test_what_was_not_saved_is_said(trial):
    with pytest.raises(
        SMDebugValueError, match=r"^statistic='p95' was not saved and cannot be computed; there are .*l2"
    ):
        trial.plot(statistic="p95")
    with pytest.raises(SMDebugValueError, match=r"^no number was saved of the tensors that are asked for$"):
        trial.plot(regex="nothing")


def test_a_figure_shows_itself_in_a_notebook_and_opens_no_window(trial):
    assert trial.plot()._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_without_matplotlib_the_extra_is_named(trial, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SMDebugRuntimeError, match=r"^plot needs matplotlib, .*: pip install matplotlib$"):
        trial.plot()
