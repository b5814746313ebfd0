import numpy as np
import pytest

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import (
    DamagedRecord,
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
REDUCTIONS = "smdebug/reductions/"
VALUE = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


def test_values_are_found_by_the_steps_of_any_mode(run):
    run.collections()
    for step in range(4):
        run.step(step, {"t": VALUE * step}, (TRAIN, EVAL)[step % 2], step // 2)
    tensor = create_trial(run.end().root).tensor("t")
    assert tensor.steps() == [0, 1, 2, 3]
    assert tensor.steps(TRAIN) == tensor.steps(EVAL) == [0, 1]
    np.testing.assert_array_equal(tensor.value(3), VALUE * 3)
    np.testing.assert_array_equal(tensor.value(1, TRAIN), VALUE * 2)
    np.testing.assert_array_equal(tensor.value(1, mode=EVAL), VALUE * 3)
    assert list(tensor.values()) == [0, 1, 2, 3]
    np.testing.assert_array_equal(tensor.values(EVAL)[1], VALUE * 3)
    assert tensor.shape(0) == (2, 2)
    assert tensor.prev_steps(2) == [0, 1, 2]
    assert tensor.prev_steps(2, 2) == [1, 2]
    assert tensor.prev_steps(7, 1, EVAL) == [1]


def test_a_missing_value_says_why(run):
    run.collections().step(0, {"t": VALUE}).step(2, {"other": VALUE}).step(4, {REDUCTIONS + "mean/t": np.float64(1)})
    tensor = create_trial(run.root).tensor("t")
    with pytest.raises(StepUnavailable):
        tensor.value(1)
    with pytest.raises(TensorUnavailableForStep, match=r"for step 2 with mode GLOBAL as it was not saved\.$"):
        tensor.value(2)
    with pytest.raises(TensorUnavailableForStep, match="You might want to query for the reductions"):
        tensor.value(4)
    with pytest.raises(StepNotYetAvailable):
        tensor.value(5)
    with pytest.raises(StepNotYetAvailable):
        tensor.value(0, EVAL)
    with pytest.raises(ShapeUnavailableForStep):
        tensor.shape(4)
    with pytest.raises(InvalidWorker):
        tensor.value(0, worker="worker_9")
    with pytest.raises(TensorUnavailableForStep):
        tensor.workers(2)
    with pytest.raises(SMDebugNotImplementedError):
        tensor.step(0)
    run.end()
    with pytest.raises(StepUnavailable):
        tensor.value(5)


def test_a_tensor_with_value_and_shape_has_both(run):
    trial = create_trial(run.collections().step(0, {"t": VALUE}, shapes={"t": (9, 9), "only": (3,)}).root)
    tensor = trial.tensor("t")
    assert tensor.shape(0) == (9, 9)
    np.testing.assert_array_equal(tensor.value(0), VALUE)
    assert tensor.original_name == "t!"
    assert trial.tensor("only").shape(0) == (3,)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("only").value(0)


def test_a_stored_reduction_is_preferred(run):
    stored = {"t": VALUE, REDUCTIONS + "mean/t": np.float64(77), REDUCTIONS + "abs_max/t": np.full(1, 88.0)}
    tensor = create_trial(run.collections().step(0, stored).root).tensor("t")
    assert tensor.reduction_value(0, "mean") == 77
    assert tensor.reduction_value(0, "max", abs=True) == 88
    assert tensor.reduction_values(0) == {("mean", False): 77, ("max", True): 88}
    assert float(tensor.reduction_value(0, "min")) == -2


@pytest.mark.parametrize(
    "name, absolute, expected",
    [
        ("min", False, -2), ("max", False, 4), ("mean", False, 1.5), ("median", False, 2), ("sum", False, 6),
        ("prod", False, -24), ("variance", False, 5.25), ("std", False, 5.25**0.5), ("l1", False, 10),
        ("p5", False, -1.55), ("p50", False, 2), ("p95", True, 3.85), ("zero_share", False, 0), ("nan_count", False, 0),
        ("inf_count", False, 0), ("l2", False, 30**0.5), ("min", True, 1), ("mean", True, 2.5), ("l2", True, 30**0.5),
    ],
)  # fmt: skip
def test_a_reduction_that_was_not_stored_is_computed(run, name, absolute, expected):
    tensor = create_trial(run.collections().step(0, {"t": VALUE}).root).tensor("t")
    assert tensor.reduction_value(0, name, abs=absolute) == pytest.approx(expected, rel=1e-6)
    assert tensor.reduction_values(0) == {}


def test_a_reduction_that_does_not_exist_is_refused(run):
    tensor = create_trial(run.collections().step(0, {REDUCTIONS + "max/t": np.float64(1)}).root).tensor("t")
    for name, absolute in (("average", False), ("nan_count", True), ("histogram", True), ("statistics", False)):
        with pytest.raises(SMDebugValueError, match=f"Invalid reduction type {name}"):
            tensor.reduction_value(0, name, abs=absolute)
    with pytest.raises(TensorUnavailableForStep):
        tensor.reduction_value(0, "mean")


def test_a_histogram_is_an_array_stored_or_computed(run):
    counts = np.zeros(260, np.int64)
    counts[194] = 7
    broken = {REDUCTIONS + "histogram/t": np.arange(3)}
    run.collections().step(0, {REDUCTIONS + "histogram/t": counts, REDUCTIONS + "nan_count/t": np.float64(2)})
    tensor = create_trial(run.step(1, {"t": VALUE}).step(2, broken).root).tensor("t")
    assert tensor.reduction_value(0, "histogram").tolist() == counts.tolist()
    assert tensor.reduction_values(0)["histogram", False].tolist() == counts.tolist()
    assert tensor.reduction_values(0)["nan_count", False] == 2
    computed = tensor.reduction_value(1, "histogram")
    # 1 and -2, 3 and 4: two to the power of 0, of 1 and of 2.
    assert {i: n for i, n in enumerate(computed.tolist()) if n} == {194: 1, 63: 1, 195: 1, 196: 1}
    with pytest.raises(DamagedRecord, match="it is no histogram"):
        tensor.reduction_value(2, "histogram")


def test_reductions_belong_to_the_tensor_whose_name_has_output_numbers(run):
    stored = {"scope/w:0": VALUE, REDUCTIONS + "mean/scope/w": np.float64(7)}
    trial = create_trial(run.collections().step(0, stored).root)
    assert trial.tensor_names() == ["scope/w:0"]
    assert trial.tensor("scope/w:0").reduction_value(0, "mean") == 7


def test_a_tensor_named_like_a_reduction_is_a_tensor(run):
    names = ["mine/smdebug/reductions/mean/t", "smdebug/reductions/other/t"]
    trial = create_trial(run.collections().step(0, dict.fromkeys(names, VALUE)).root)
    assert trial.tensor_names() == names
    np.testing.assert_array_equal(trial.tensor(names[0]).value(0), VALUE)


def test_workers_have_their_own_values(run):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    run.step(0, {"t": VALUE}).step(0, {"t": VALUE * 2}, worker="worker_1")
    run.step(1, {"x": VALUE}).step(1, {"t": VALUE * 3}, worker="worker_1")
    tensor = create_trial(run.end().root).tensor("t")
    assert tensor.workers(0) == ["worker_0", "worker_1"]
    assert tensor.workers(1) == ["worker_1"]
    np.testing.assert_array_equal(tensor.value(0), VALUE)
    np.testing.assert_array_equal(tensor.value(0, worker="worker_1"), VALUE * 2)
    np.testing.assert_array_equal(tensor.value(1), VALUE * 3)
    with pytest.raises(InvalidWorker):
        tensor.value(1, worker="worker_0")
    assert list(tensor.values(worker="worker_0")) == [0]
    assert list(tensor.values(worker="worker_1")) == [0, 1]
    with pytest.raises(InvalidWorker):
        tensor.values(worker="worker_2")


def test_values_of_a_tensor_with_reductions_alone_say_so(run):
    run.collections().step(0, {REDUCTIONS + "mean/t": np.float64(1)})
    with pytest.raises(TensorUnavailableForStep, match="query for the reductions"):
        create_trial(run.root).tensor("t").values()


def test_a_damaged_record_is_named_and_the_others_are_read(run):
    run.collections().step(0, {"a": VALUE, "b": VALUE, "c": VALUE})
    path = run.root / "events/000000000000/000000000000_worker_0.tfevents"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    trial = create_trial(run.root)
    with pytest.raises(DamagedRecord) as caught:
        trial.tensor("b").value(0)
    assert (caught.value.file, caught.value.tensor, caught.value.step) == (str(path), "b", 0)
    np.testing.assert_array_equal(trial.tensor("a").value(0), VALUE)
    np.testing.assert_array_equal(trial.tensor("c").value(0), VALUE)


def test_a_record_of_another_tensor_is_not_taken_for_it(run):
    run.collections().step(0, {"aa": VALUE, "bb": VALUE})
    path = run.root / "index/000000000/000000000000_worker_0.json"
    path.write_text(path.read_text().replace('"aa"', '"cc"'))
    with pytest.raises(DamagedRecord, match="its place holds aa"):
        create_trial(run.root).tensor("cc").value(0)


def test_an_event_file_that_is_gone_makes_the_value_unavailable(run):
    run.collections().step(0, event=False).step(1)
    trial = create_trial(run.root)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("t").value(0)
    assert trial.tensor("t").value(1).shape == (2, 2)


def test_cached_values_are_read_once(run):
    run.collections().step(0)
    trial = create_trial(run.root, cache=True)
    first = trial.tensor("t").value(0)
    assert trial.tensor("t").value(0) is first
    assert create_trial(run.root).tensor("t").value(0) is not first


def test_dtype_and_shape_are_told_without_the_values(run):
    run.collections().step(0, {"t": VALUE, REDUCTIONS + "mean/r": np.float64(1)}, shapes={"s": (3,)})
    trial = create_trial(run.root)
    forms = {name: trial.tensor(name).form(0) for name in ("t", "s", "r")}
    assert [form and (form.dtype, form.shape) for form in forms.values()] == [("float32", (2, 2)), ("-", (3,)), None]
    record = trial.tensor("t").record(0)
    assert (record.dtype, record.wall_time) == ("float32", 1000.0)
