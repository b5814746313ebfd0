import threading

import numpy as np
import pytest

from smd_agent.analysis.steps import StepState
from smd_agent.analysis.trial import create_trial
from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import (
    MissingCollectionFiles,
    NoMoreData,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    StepUnavailable,
    TensorUnavailable,
)

TRAIN, EVAL, PREDICT, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.GLOBAL
MEAN = "smdebug/reductions/mean/"


def two_modes(run):
    run.collections(weights="weight$", losses="loss")
    for step in range(0, 8, 2):
        run.step(step, {"a.weight": np.ones(2), "loss": np.float32(step)}, TRAIN, step // 2)
        run.step(step + 1, {"a.weight": np.ones(2), MEAN + "b.bias": np.float64(step)}, EVAL, step // 2)
    return run.end()


def test_a_finished_run_tells_its_steps_and_modes(run):
    trial = create_trial(f" {two_modes(run).root} ")
    assert trial.name == "run"
    assert trial.steps() == list(range(8))
    assert trial.steps(TRAIN) == trial.steps(EVAL) == [0, 1, 2, 3]
    assert trial.steps(PREDICT) == []
    assert set(trial.modes()) == {TRAIN, EVAL}
    assert (trial.mode(5), trial.mode_step(5), trial.mode_modestep(5)) == (EVAL, 2, (EVAL, 2))
    assert trial.mode_modestep(99) == (None, None)
    assert (trial.global_step(EVAL, 2), trial.global_step(EVAL, 9), trial.global_step(GLOBAL, 3)) == (5, None, 3)
    assert trial.workers() == ["worker_0"]
    assert trial.loaded_all_steps


def test_names_can_be_filtered(run):
    trial = create_trial(two_modes(run).root)
    assert trial.tensor_names() == ["a.weight", "b.bias", "loss"]
    assert trial.tensor_names(mode=TRAIN) == ["a.weight", "loss"]
    assert trial.tensor_names(step=3) == ["a.weight", "b.bias"]
    assert trial.tensor_names(step=1, mode=EVAL) == ["a.weight", "b.bias"]
    assert trial.tensor_names(step=99) == []
    assert trial.tensor_names(regex="^b|oss$") == ["b.bias", "loss"]
    assert trial.tensor_names(regex=["^b", ["loss"]], mode=TRAIN) == ["loss"]
    assert trial.tensor_names(collection="weights") == ["a.weight"]
    assert trial.tensor_names(collection=trial.collection("losses")) == ["loss"]
    assert trial.tensor_names(collection=Collection("mine", "bias")) == ["b.bias"]


def test_wrong_filters_are_refused(run):
    trial = create_trial(two_modes(run).root)
    with pytest.raises(ValueError, match="Only one of `regex` or `collection`"):
        trial.tensor_names(regex="a", collection="weights")
    with pytest.raises(TypeError, match="Invalid argument type for collection"):
        trial.tensor_names(collection=3)
    with pytest.raises(KeyError):
        trial.tensor_names(mode=PREDICT)
    with pytest.raises(KeyError):
        trial.tensor_names(mode=EVAL, step=17)


def test_a_filter_without_result_is_reported(run, caplog):
    trial = create_trial(two_modes(run).root)
    assert trial.tensor_names(regex="nothing") == []
    assert "no saved tensor matches nothing" in caplog.text
    caplog.clear()
    # What one mode or step does not have, another one has.
    assert trial.tensor_names(collection="losses", step=1) == [] == trial.tensor_names(regex="bias", mode=TRAIN)
    assert caplog.text == ""


def test_an_unknown_collection_is_created_empty(run):
    trial = create_trial(two_modes(run).root)
    assert set(trial.collections()) == {"weights", "losses"}
    assert trial.collection("new").include_regex == []


def test_a_tensor_that_was_not_saved_is_unavailable(run):
    trial = create_trial(two_modes(run).root)
    assert not trial.has_tensor("c")
    with pytest.raises(TensorUnavailable, match=r"Tensor c was not saved\."):
        trial.tensor("c")


@pytest.mark.parametrize(
    "span, steps", [((2, 5), [2, 3, 4]), ((None, 3), [0, 1, 2]), ((6, None), [6, 7]), ((None, None), list(range(8)))]
)
def test_a_range_of_global_steps_is_loaded(run, span, steps):
    assert create_trial(two_modes(run).root, range_steps=span).steps() == steps


@pytest.mark.parametrize("span", [(3, 3), (5, 2), (-1, None)])
def test_a_wrong_range_is_refused(run, span):
    with pytest.raises(AssertionError):
        create_trial(two_modes(run).root, range_steps=span)


def test_trials_are_equal_by_name_and_path(run):
    root = two_modes(run).root
    assert create_trial(root) == create_trial(root)
    assert len({create_trial(root), create_trial(root), create_trial(root, name="other")}) == 2


def test_what_cannot_be_read_says_so(run):
    with pytest.raises(SMDebugNotImplementedError):
        create_trial(run.root, profiler=True)
    with pytest.raises(TypeError):
        create_trial(out_dir="here")


def test_new_steps_are_seen_while_the_run_goes_on(run):
    trial = create_trial(run.collections().step(0).root)
    assert trial.steps() == [0]
    run.step(1, {"late": np.zeros(1)})
    assert trial.has_tensor("late")
    assert trial.steps() == [0, 1]
    run.step(2500).end()
    assert trial.steps() == [0, 1, 2500]
    assert trial.loaded_all_steps


def test_without_dynamic_refresh_nothing_new_is_seen(run):
    trial = create_trial(run.collections().step(0).root)
    trial.dynamic_refresh = False
    run.step(1)
    assert trial.steps() == [0]
    trial.refresh_data()
    assert trial.steps() == [0, 1]


def test_names_that_a_collection_gains_while_the_run_goes_on_are_seen(run):
    trial = create_trial(run.collections().step(0).root)
    trial.collection("mine").include("t")
    path = run.root / "collections/000000000/worker_0_collections.json"
    path.write_text('{"collections": {"found": {"name": "found", "tensor_names": ["t"]}}, "_meta": {"num_workers": 1}}')
    run.step(1)
    assert trial.tensor_names(collection="mine") == ["t"]
    assert trial.tensor_names(collection="found") == ["t"]


def test_temporary_and_foreign_files_are_no_steps(run, caplog):
    run.collections().step(0)
    folder = run.root / "index/000000000"
    (folder / "000000000001_worker_0.json.77.tmp").write_text("{")
    (folder / "notes.txt").write_text("")
    (run.root / "index/else").mkdir()
    assert create_trial(run.root).steps() == [0]
    assert caplog.text == ""


def test_a_corrupt_index_is_named_once_and_the_others_are_read(run, caplog):
    run.collections().step(0).step(1).step(2)
    bad = run.root / "index/000000000/000000000001_worker_0.json"
    whole = bad.read_text()
    bad.write_text(whole[:50])
    trial = create_trial(run.root)
    assert trial.steps() == trial.steps() == [0, 2]
    assert caplog.text.count(str(bad)) == 1
    assert trial.problems == {"index/000000000/000000000001_worker_0.json": "Empty/Corrupt Index File"}
    bad.write_text(whole)
    assert trial.steps() == [0, 1, 2]
    assert trial.problems == {}


def test_a_killed_run_keeps_its_complete_steps(run):
    run.collections().step(0).step(1)
    (run.root / "events/000000000002").mkdir()
    (run.root / "events/000000000002/000000000002_worker_0.tfevents.5.tmp").write_bytes(b"half a rec")
    trial = create_trial(run.root)
    assert trial.steps() == [0, 1]
    assert trial.tensor("t").value(1).tolist() == [[1, 1], [1, 1]]
    assert trial.has_passed_step(2) is StepState.NOT_YET_AVAILABLE


def test_a_step_is_complete_when_all_workers_have_written_it(run):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    run.step(0).step(0, worker="worker_1").step(4).step(8)
    trial = create_trial(run.root)
    assert trial.steps() == [0]
    assert trial.steps(show_incomplete_steps=True) == trial.steps(TRAIN, show_incomplete_steps=True) == [0, 4, 8]
    assert trial.has_passed_step(4) is StepState.NOT_YET_AVAILABLE
    run.step(8, worker="worker_1")
    assert trial.steps() == [0, 4, 8]
    assert [trial.has_passed_step(step) for step in (3, 4, 8, 9)] == [
        StepState.UNAVAILABLE,
        StepState.AVAILABLE,
        StepState.AVAILABLE,
        StepState.NOT_YET_AVAILABLE,
    ]
    assert trial.workers() == ["worker_0", "worker_1"]


def test_the_end_completes_every_step(run):
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    trial = create_trial(run.step(0).step(1).root)
    assert trial.steps() == []
    assert trial.last_complete_step == -1
    run.end()
    assert trial.steps() == [0, 1]
    assert trial.last_complete_step == 1
    assert trial.has_passed_step(7) is StepState.UNAVAILABLE


def test_half_of_too_many_incomplete_steps_is_taken_as_it_is(run, monkeypatch):
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "4")
    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    for step in range(0, 40, 10):
        run.step(step)
    trial = create_trial(run.root)
    assert trial.steps() == []
    run.step(40)
    assert trial.steps() == [0, 10]


def test_waiting_for_steps_returns_when_they_are_there(run):
    trial = create_trial(run.collections().step(0).root)
    trial.dynamic_refresh = False
    later = threading.Timer(0.05, lambda: run.step(3))
    later.start()
    trial.wait_for_steps([0, 3])
    later.join()
    assert 3 in trial.steps()
    assert trial.dynamic_refresh is False


def test_waiting_for_steps_that_cannot_come_ends(run):
    trial = create_trial(run.collections().step(0).step(5).root)
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([3])
    run.end()
    with pytest.raises(NoMoreData, match="Max step available is 5"):
        trial.wait_for_steps([5, 9])


def test_opening_waits_for_the_collections_files(run):
    run.step(0)
    later = threading.Timer(0.05, lambda: run.collections())
    later.start()
    assert create_trial(run.root).steps() == [0]
    later.join()


@pytest.mark.parametrize("exists", [False, True])
def test_opening_something_else_ends_with_a_sentence(tmp_path, exists):
    root = tmp_path / "elsewhere"
    if exists:
        root.mkdir()
    with pytest.raises(SMDebugRuntimeError, match="elsewhere"):
        create_trial(root, timeout=0.02)


def test_an_ended_run_without_all_collections_files_is_refused(run):
    run.collections(num_workers=2).step(0).end()
    with pytest.raises(MissingCollectionFiles):
        create_trial(run.root)


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_without_any_collections_file_is_opened_by_its_index_files(run, caplog, ended):
    tensors = {"Net_fc.weight": np.ones(2), "gradient/Net_fc.weight": np.zeros(2)}
    run.step(0, tensors).step(1, tensors).step(1, tensors, worker="worker_1")
    if ended:
        run.end()
    trial = create_trial(run.root, timeout=0.02)
    assert trial.num_workers == 2
    assert trial.tensor_names(collection="gradients") == ["gradient/Net_fc.weight"]
    assert trial.tensor_names(collection="weights") == ["Net_fc.weight"]
    assert trial.steps(show_incomplete_steps=True) == [0, 1]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "has no collections file" in line


def test_an_ended_folder_without_steps_and_collections_files_is_refused(run):
    with pytest.raises(MissingCollectionFiles):
        create_trial(run.end().root)


def test_a_killed_run_without_all_collections_files_is_opened_with_a_warning(run, caplog):
    run.collections(num_workers=2).step(0).step(0, worker="worker_1")
    assert create_trial(run.root, timeout=0.02).steps() == [0]
    assert "only worker_0 left a collections file" in caplog.text


def test_a_collections_file_of_another_kind_is_refused(run):
    run.collections()
    (run.root / "collections/000000000/worker_0_collections.json").write_text('{"other": 1}')
    with pytest.raises(SMDebugRuntimeError, match="worker_0_collections"):
        create_trial(run.root)


def test_a_worker_that_is_a_device_keeps_its_name(run):
    device = "/job:localhost/replica:0/task:0/device:GPU:0"
    run.root = run.root.with_name("my__run")
    run.collections(device).step(0, worker=device)
    trial = create_trial(run.root)
    assert trial.workers() == [device]
    assert trial.tensor("t").workers(0) == [device]
    assert trial.tensor("t").value(0, worker=device).sum() == 0


def test_workers_that_evaluate_at_different_times_keep_their_values_apart(run):
    train, evaluate = ModeKeys.TRAIN, ModeKeys.EVAL

    def value(number):
        return {"t": np.full(1, number, np.float32)}

    for worker in ("worker_0", "worker_1"):
        run.collections(worker, num_workers=2)
    # Two steps of training and one of evaluation; the other worker evaluates after the first.
    for place, (mode, number) in enumerate([(train, 0), (train, 1), (evaluate, 0)]):
        run.step(place, value(10 * place), mode, number)
    for place, (mode, number) in enumerate([(train, 0), (evaluate, 0), (train, 1)]):
        run.step(place, value(10 * place + 1), mode, number, "worker_1")
    run.step(3, value(30), train, 2)
    trial = create_trial(str(run.root))
    tensor = trial.tensor("t")
    assert (trial.steps(train), trial.steps(evaluate)) == ([0, 1], [0])
    found = {
        (mode, step): [tensor.value(step, mode, worker).item() for worker in tensor.workers(step, mode)]
        for mode in (train, evaluate)
        for step in trial.steps(mode)
    }
    assert found == {(train, 0): [0, 1], (train, 1): [10, 21], (evaluate, 0): [20, 11]}
    assert tensor.values(evaluate, "worker_1") == {0: 11}
    assert tensor.workers(2, train) == ["worker_0"]
    assert [tensor.value(2, worker=worker).item() for worker in tensor.workers(2)] == [20, 21]
    assert trial.tensor_names(step=0, mode=evaluate) == ["t"]
