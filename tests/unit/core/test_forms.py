"""In which form a tensor is saved: whole, by its reductions, by its histogram, and how its size decides."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.channel_axes import ChannelAxes, last_axis, second_axis
from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.reductions import count_by_size
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.save_plan import SavePlan
from smd_agent.core.value_writing import write_group

RED = "smdebug/reductions"


class MemoryStep:
    def __init__(self):
        self.values, self.shapes, self.blocks = {}, {}, []

    def add(self, name, array, original_dtype=None, wall_time=None):
        assert name not in self.values
        self.values[name] = array.tolist()

    def add_text(self, name, values):
        self.values[name] = values

    def add_scalars(self, names, values):
        self.blocks.append(names)
        self.values.update(zip(names, values.tolist(), strict=True))

    def add_shape(self, name, original_name, shape, dtype=None):
        self.shapes[name] = (*shape, dtype)


def collection(name, *, regex=".", config=None):
    return Collection(name, [regex], save_config=SaveConfig(save_interval=1), reduction_config=config)


def save(plan, tensors, axes=None):
    """Save tensors together; return what is stored, and the names that could be."""
    group = plan.group(tuple(tensors), plan.due(ModeKeys.TRAIN, 0))
    sink = MemoryStep()
    captured = {i: (array, None) for i, array in enumerate(tensors.values())}
    write_group(sink, tuple(tensors), captured, group, axes or ChannelAxes())
    assert {*sink.values} <= group.tags(list(tensors))
    return sink


def test_a_tensor_of_few_elements_is_saved_whole_and_a_larger_one_reduced():
    config = ReductionConfig(["mean", "histogram"], norms=["l2"], save_shape=True, save_raw_up_to=4)
    plan = SavePlan([collection("c", config=config)])
    four, five = np.arange(4.0), np.ones((5, 1))
    sink = save(plan, {"a": five, "b": four, "s": np.array(7.0), "z": 2 * five})
    histograms = {f"{RED}/histogram/{name}": sink.values.pop(f"{RED}/histogram/{name}") for name in "az"}
    assert histograms[f"{RED}/histogram/z"] == count_by_size(2 * five).tolist()
    assert sink.values == {
        "b": [0, 1, 2, 3],
        "s": 7,
        f"{RED}/mean/a": 1,
        f"{RED}/l2/a": pytest.approx(5**0.5),
        f"{RED}/mean/z": 2,
        f"{RED}/l2/z": pytest.approx(20**0.5),
    }
    # The values have the shape; the old reader takes a noted one for all there is.
    assert sink.shapes == {"a": (5, 1, "float64"), "z": (5, 1, "float64")}


def test_another_size_in_a_later_step_is_another_form():
    plan = SavePlan([collection("c", config=ReductionConfig(["max"], save_raw_up_to=2))])
    sizes = [3, 1, 3, 2]
    forms = [save(plan, {"a": np.ones(3), "b": np.ones(n)}).values.keys() for n in sizes]
    large, small = {f"{RED}/max/a", f"{RED}/max/b"}, {f"{RED}/max/a", "b"}
    assert forms == [large, small, large, small]


def test_what_one_collection_wants_reduced_or_whole_it_gets_whatever_another_says():
    bounded = collection("bounded", config=ReductionConfig(["statistics"], save_raw_up_to=64))
    reduced = collection("reduced", regex="r", config=ReductionConfig(["max"]))
    whole = collection("whole", regex="w", config=None)
    plan = SavePlan([bounded, reduced, whole])
    x = np.ones(3)
    stored = save(plan, {"a": x, "r": x, "w": x}).values
    assert stored["a"] == stored["w"] == [1, 1, 1]
    assert "r" not in stored
    assert stored[f"{RED}/max/r"] == stored[f"{RED}/nan_count/w"] + 1 == 1
    assert f"{RED}/max/a" not in stored


def test_a_limit_without_reductions_changes_nothing():
    plan = SavePlan([collection("c", config=ReductionConfig(save_raw_tensor=True, save_raw_up_to=2))])
    assert save(plan, {"a": np.ones(5)}).values == {"a": [1] * 5}


def test_small_text_is_saved_whole_and_what_has_no_reduction_is_said(capsys):
    config = ReductionConfig(["statistics", "histogram"], save_raw_up_to=2)
    plan = SavePlan([collection("c", config=config)])
    stored = save(plan, {"text": np.array(["a", "b"]), "more": np.array(["a", "b", "c"])}).values
    assert stored == {"text": ["a", "b"]}
    said = capsys.readouterr().err.splitlines()
    assert said == ["smd_agent: more has values of type <U1, for which not all reductions exist"]


def test_nobody_misses_reductions_of_text_that_is_saved_as_it_is(capsys):
    reduced = collection("reduced", config=ReductionConfig(["statistics", "histogram"]))
    plan = SavePlan([reduced, collection("whole", config=None)])
    assert save(plan, {"text": np.array(["a", "b"])}).values == {"text": ["a", "b"]}
    assert capsys.readouterr().err == ""


def test_complex_values_have_counts_and_norms():
    plan = SavePlan([collection("c", config=ReductionConfig(["statistics"]))])
    z = np.array([0, 3 + 4j, complex("nan"), -2j, complex(0, float("inf"))])
    stored = save(plan, {"z": z}).values
    assert {name.split("/")[2] for name in stored} == {"zero_share", "nan_count", "inf_count", "l2", "abs_mean"}
    assert stored[f"{RED}/zero_share/z"] == 0.2
    assert stored[f"{RED}/nan_count/z"] == stored[f"{RED}/inf_count/z"] == 1


@pytest.mark.parametrize("limit, form", [(0, (True, ())), (3, (False, ("max",)))])
def test_a_loss_is_whole_but_a_large_one_where_the_limit_says_what_is_large(limit, form):
    manager = CollectionManager({"losses": Collection("losses", ["loss"])}, built_in={"losses": ["loss"]})
    manager.prepare(SaveConfig(), ReductionConfig(["max"], save_shape=True, save_raw_up_to=limit))
    config = manager.get("losses").reduction_config
    assert (config.save_raw_tensor, tuple(config.reductions)) == form
    assert config.save_shape
    assert config.save_raw_up_to == limit


def test_shares_of_channels_are_those_of_outputs_alone_and_of_small_ones_too(capsys):
    plan = SavePlan([collection("c", config=ReductionConfig(["max", "dead_share"], save_raw_up_to=8))])
    axes = ChannelAxes()
    axes.note("relu_output", second_axis)
    axes.note("dense/outputs", last_axis)
    images = np.ones((2, 4, 3, 3))
    images[:, 1] = images[:, 2] = images[0, 3] = 0
    tensors = {
        "relu_output_0": images,
        "relu_output_1": np.array([[0.0, 1, 0], [0, 0, 0]]),
        "dense/outputs": np.eye(5)[:, :4],
        "dense/outputs_1": np.array([0.0, 1]),
        "weight": images,
    }
    stored = {name: value for name, value in save(plan, tensors, axes).values.items() if "dead_share" in name}
    assert stored == {
        f"{RED}/dead_share/relu_output_0": 0.5,
        f"{RED}/dead_share/relu_output_1": pytest.approx(2 / 3),
        f"{RED}/dead_share/dense/outputs": 0,
    }
    assert capsys.readouterr().err == ""


def test_a_tensor_that_nothing_would_be_saved_of_is_told(capsys):
    plan = SavePlan([collection("c", config=ReductionConfig(["dead_share", "saturated_share"]))])
    assert save(plan, {"weight": np.ones((2, 3)), "text": np.array(["a"])}).values == {}
    assert save(plan, {"weight": np.ones((2, 3))}).values == {}
    assert capsys.readouterr().err.splitlines() == [
        f"smd_agent: {name} is not saved: only outputs of layers whose channels are known have dead_share"
        for name in ("weight", "text")
    ]
