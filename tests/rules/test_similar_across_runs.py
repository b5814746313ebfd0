"""SimilarAcrossRuns, on runs that are the same or not."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.cli import main
from smd_agent.core.modes import ModeKeys
from smd_agent.rules import SimilarAcrossRuns


@pytest.fixture
def pair(written):
    """Write two runs of losses and weights, of which the second has some values changed."""

    def write(changed=None, more=0):
        runs = []
        for changes in ({}, changed or {}):
            run = written(losses="loss", weights="weight")
            for step in range(4):
                values = {"loss": 1.0 + step, "weight": np.arange(6.0) + step, "text": np.array(step)}
                run.step(**{**values, **changes.get(step, {})})
            for _ in range(more if not runs else 0):
                run.step(ModeKeys.EVAL, loss=7.0)
            runs.append(run.ended())
        return runs

    return write


def test_runs_that_are_the_same(pair):
    first, second = pair(more=2)
    assert first.findings(SimilarAcrossRuns(other_trials=second.folder)) == []
    assert first.findings(SimilarAcrossRuns(other_trials=second.trial(), collection_names="losses,weights")) == []


def test_a_loss_that_differs(pair):
    first, second = pair({2: {"loss": 3.5}, 3: {"loss": 4.25}})
    (found,) = first.findings(SimilarAcrossRuns(other_trials=second.folder))
    assert (found.tensor, found.first_step, found.last_step, found.steps) == ("loss", 2, 3, 2)
    assert found.evidence == {"here": 3.0, "other": 3.5, "difference": 0.5}


@pytest.mark.parametrize("apart, finds", [(2e-5, True), (0.5e-5, False)])
def test_the_tolerance(pair, apart, finds):
    first, second = pair({1: {"loss": 2.0 * (1 + apart)}})
    assert bool(first.findings(SimilarAcrossRuns(other_trials=second.folder))) == finds
    assert first.findings(SimilarAcrossRuns(other_trials=second.folder, rtol=3e-5)) == []


@pytest.mark.parametrize(
    "weight, evidence",
    [
        (np.array([0.0, 1, 2, 3, 9, 5.5]), {"here": 4.0, "other": 9.0, "difference": 5.0}),
        (np.arange(6.0).reshape(2, 3), {"shape": 1}),
    ],
)
def test_tensors(pair, weight, evidence):
    first, second = pair({0: {"weight": weight}})
    (found,) = first.findings(SimilarAcrossRuns(other_trials=second.folder, collection_names="weights"))
    assert (found.tensor, found.evidence) == ("weight", evidence)


def test_nan_is_like_nan(pair, written):
    first, second = written(losses="l"), written(losses="l")
    first.step(l=[np.nan, np.inf, 1.0])
    second.step(l=[np.nan, np.inf, 1.0])
    first.step(l=[np.nan, 1.0])
    second.step(l=[2.0, 1.0])
    (found,) = first.ended().findings(SimilarAcrossRuns(other_trials=second.ended().folder))
    assert (found.first_step, found.evidence["other"]) == (1, 2.0)


def test_statistics_are_compared_where_there_is_no_more(written):
    runs = [written(weights="w") for _ in range(3)]
    runs[0].step(means={"w": 2.0})
    runs[1].step(w=np.array([1.0, 3.0]))
    runs[2].step(w=np.array([1.0, 3.5]))
    for run in runs:
        run.ended()
    others = {"collection_names": "weights"}
    assert runs[0].findings(SimilarAcrossRuns(other_trials=runs[1].folder, **others)) == []
    (found,) = runs[0].findings(SimilarAcrossRuns(other_trials=runs[2].folder, **others))
    assert found.evidence == {"here": 2.0, "other": 2.25, "difference": 0.25}


def test_steps_of_other_modes_are_not_compared(pair, written):
    first, second = written(losses="loss"), written(losses="loss")
    first.step(loss=1.0)
    second.step(ModeKeys.EVAL, loss=2.0)
    (unjudged,) = first.ended().verdict(SimilarAcrossRuns(other_trials=second.ended().folder)).not_judged
    assert unjudged.reason == "the runs have no step at which both have saved the same tensor"


def test_as_it_is_documented(pair, met_at):
    first, second = (run.trial() for run in pair({1: {"loss": 9.0}, 2: {"weight": np.zeros(6)}, 3: {"text": 8}}))
    for name, others in (("other_trials", [second]), ("other_trial", second), ("other_trial", second.path)):
        # Without names and patterns, all tensors.
        assert met_at(SimilarAcrossRuns(base_trial=first, **{name: others}), first) == [1, 2, 3]
    named = {"base_trial": first, "other_trials": second.path}
    assert met_at(SimilarAcrossRuns(**named, collection_names="losses"), first) == [1]
    assert met_at(SimilarAcrossRuns(**named, collection_names="losses", tensor_regex="^we"), first) == [1, 2]
    assert met_at(SimilarAcrossRuns(**named, tensor_regex=["^tex"]), first) == [3]
    assert SimilarAcrossRuns(**named).trials[1].path == second.path


def test_the_command(pair, capsys):
    first, second = pair({1: {"loss": 9.0}})
    assert SimilarAcrossRuns.only_by_name
    rule = ["check", first.folder, "--rules", "SimilarAcrossRuns"]
    assert main([*rule, "--other", second.folder]) == 0
    assert "warning  SimilarAcrossRuns: loss" in capsys.readouterr().out
    assert main(rule) == 2
    assert "no other run is named" in capsys.readouterr().out
    assert main([*rule, "--other", first.folder + "-missing"]) == 2
    main(["check", first.folder])
    assert "SimilarAcrossRuns" not in capsys.readouterr().out
