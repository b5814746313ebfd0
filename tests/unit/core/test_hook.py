"""Steps, modes and choices of a hook, with a sink that only remembers."""

from __future__ import annotations

import numpy as np
import pytest
from harness.memory_hook import BUILT_IN, TENSORS, MemoryRun, begin, make, saved, train

from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.hook import BaseHook
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.core.selection import Selection
from smd_agent.errors import SMDebugError, SMDebugTypeError, SMDebugValueError


def test_only_losses_every_500_steps_by_default():
    hook = make()
    train(hook, 501)
    assert {at: set(values) for at, values in saved(hook).items()} == {
        (0, ModeKeys.GLOBAL, 0): {"CrossEntropyLoss_output_0"},
        (500, ModeKeys.GLOBAL, 500): {"CrossEntropyLoss_output_0"},
    }


def test_the_program_waits_until_all_that_was_saved_is_on_disk():
    hook = make(save_config=SaveConfig(save_interval=1))
    recorder, run = hook.recorder, hook._output.sink
    recorder.reach_disk()
    train(hook, 2)
    # The second is open yet, and then held.
    recorder.reach_disk()
    assert (run.flushed, recorder.step_saved, recorder.unfinished) == ([], 1, True)
    held = recorder.hold_step()
    recorder.reach_disk()
    assert (run.flushed, recorder.step_saved, recorder.unfinished) == ([], 1, True)
    # The next one may begin before it is handed over.
    train(hook, 1)
    recorder.commit(held)
    assert run.flushed == [2]
    train(hook, 1)
    assert run.flushed == [2]
    recorder.end_step()
    recorder.reach_disk()
    assert (run.flushed, recorder.unfinished) == ([2, 4], False)
    train(hook, 1)
    recorder.resume_step(recorder.hold_step())
    recorder.reach_disk()
    saved(hook)
    assert run.flushed == [2, 4, 5]


def test_modes_count_for_themselves_and_global_counts_all():
    hook = make(save_config=SaveConfig(save_interval=1))
    for _ in range(2):
        train(hook, 1, ModeKeys.TRAIN)
        train(hook, 1, ModeKeys.EVAL)
    assert list(saved(hook)) == [
        (0, ModeKeys.TRAIN, 0),
        (1, ModeKeys.EVAL, 0),
        (2, ModeKeys.TRAIN, 1),
        (3, ModeKeys.EVAL, 1),
    ]
    assert hook.mode_steps == {ModeKeys.TRAIN: 1, ModeKeys.EVAL: 1, ModeKeys.GLOBAL: 3}
    hook.set_mode(ModeKeys.GLOBAL)
    train(hook, 1)
    assert list(saved(hook))[-1] == (4, ModeKeys.GLOBAL, 4)


@pytest.mark.parametrize(
    "rule,steps",
    [
        ({"save_interval": 3}, [0, 3, 6, 9]),
        ({"save_interval": 4, "end_step": 8}, [0, 4]),
        ({"save_interval": 4, "start_step": 5}, [8]),
        ({"save_steps": [3, 7]}, [0, 3, 7]),
        ({"save_steps": [3, 7], "end_step": 0}, [3, 7]),
        ({"end_step": 0}, []),
    ],
)
def test_the_step_rule(rule, steps):
    hook = make(save_config=SaveConfig(**rule))
    train(hook, 10)
    assert [at[0] for at in saved(hook)] == steps


def test_each_mode_may_have_its_rule_and_those_without_take_the_default():
    config = SaveConfig({ModeKeys.EVAL: SaveConfigMode(save_interval=2)})
    hook = make(save_config=config)
    train(hook, 4, ModeKeys.EVAL)
    train(hook, 4, ModeKeys.TRAIN)
    assert [at[1:] for at in saved(hook)] == [(ModeKeys.EVAL, 0), (ModeKeys.EVAL, 2), (ModeKeys.TRAIN, 0)]


def test_collections_have_their_own_rule_and_reductions():
    hook = make(save_config=SaveConfig(save_interval=2), include_collections=["weights", ["biases"]])
    hook.get_collection("weights").save_config = SaveConfig(save_interval=3)
    hook.get_collection("weights").reduction_config = ReductionConfig(["max"], norms=["l1"])
    train(hook, 4)
    found = {at[0]: set(values) for at, values in saved(hook).items()}
    reduced = {"smdebug/reductions/max/Net_conv.weight", "smdebug/reductions/l1/Net_conv.weight"}
    raw = {"Net_conv.bias", "CrossEntropyLoss_output_0"}
    assert found == {0: raw | reduced, 2: raw, 3: reduced}
    assert saved(hook)[(0, ModeKeys.GLOBAL, 0)]["smdebug/reductions/l1/Net_conv.weight"] == 15


def test_a_tensor_of_two_collections_is_saved_once_in_each_form():
    hook = make(include_collections=["weights", "mine"], save_config=SaveConfig(save_interval=1))
    hook.add_collection(Collection("mine", "conv.weight", reduction_config=ReductionConfig(["min"], save_shape=True)))
    train(hook, 1)
    hook.recorder.end_step()
    (step,) = hook._output.sink.steps
    assert set(step.values) == {
        "Net_conv.weight",
        "CrossEntropyLoss_output_0",
        "smdebug/reductions/min/Net_conv.weight",
        "smdebug/reductions/min/gradient/Net_conv.weight",
    }
    assert step.shapes == {"gradient/Net_conv.weight": (2, 3)}


def test_losses_are_never_reduced():
    hook = make(reduction_config=ReductionConfig(["mean"]), include_collections=["biases"])
    train(hook, 1)
    (values,) = saved(hook).values()
    assert set(values) == {"CrossEntropyLoss_output_0", "smdebug/reductions/mean/Net_conv.bias"}


def test_save_all_saves_all_and_a_regex_saves_what_it_finds():
    hook = make(save_all=True)
    train(hook, 1)
    assert set(next(iter(saved(hook).values()))) == set(TENSORS)
    hook = make(include_regex="_output_0$")
    train(hook, 1)
    assert set(next(iter(saved(hook).values()))) == {"conv_output_0", "CrossEntropyLoss_output_0"}


def test_no_gradients_in_evaluation():
    hook = make(include_collections=["gradients"], save_config=SaveConfig(save_interval=1))
    train(hook, 1, ModeKeys.EVAL)
    train(hook, 1, ModeKeys.TRAIN)
    assert [("gradient/Net_conv.weight" in values) for values in saved(hook).values()] == [False, True]


def test_default_collections_can_be_switched_off_as_documented():
    hook = make(include_collections=["biases"])
    hook.get_collection("losses").save_config.end_step = 0
    train(hook, 1)
    assert set(next(iter(saved(hook).values()))) == {"Net_conv.bias"}


def test_values_without_reductions_are_named_once(capsys):
    hook = make(reduction_config=ReductionConfig(["mean"], norms=["l2"]), save_all=True)
    for _ in range(2):
        begin(hook)
        hook.position.clock.due = 0
        hook.recorder.save_tensors(["complex", "text"], [np.ones(3, complex), np.array(["a"])])
    (values, *_) = saved(hook).values()
    assert set(values) == {"smdebug/reductions/l2/complex"}
    lines = capsys.readouterr().err.splitlines()
    assert sum("complex has values of type complex128" in line for line in lines) == 1


def test_a_scalar_belongs_to_the_step_and_mode_of_its_call():
    hook = make(save_config=SaveConfig(save_interval=4))
    train(hook, 2, ModeKeys.TRAIN)
    hook.save_scalar("lr", 0.1, timestamp=5.0)
    train(hook, 1)
    hook.recorder.end_step()
    step = next(step for step in hook._output.sink.steps if step.at[0] == 1)
    assert step.at == (1, ModeKeys.TRAIN, 1)
    assert step.values["scalar/lr"].shape == (1,)
    assert step.values["scalar/lr"] == [0.1]
    assert step.times["scalar/lr"] == 5.0


def test_a_scalar_before_the_first_step_is_not_lost():
    hook = make()
    hook.save_scalar("seed", 42)
    train(hook, 1)
    assert saved(hook)[(0, ModeKeys.GLOBAL, 0)]["scalar/seed"] == [42]
    alone = make()
    alone.save_scalar("seed", np.int32(7))
    alone.close()
    assert saved(alone)[(0, ModeKeys.GLOBAL, 0)]["scalar/seed"] == [7]


@pytest.mark.parametrize("value", [[1, 2], "text", np.zeros((2, 2)), None])
def test_a_scalar_is_one_number(value):
    with pytest.raises(SMDebugTypeError, match="scalar/x has non scalar value of type"):
        make().save_scalar("x", value)


def test_save_tensor_is_saved_raw_in_the_named_collections():
    hook = make(reduction_config=ReductionConfig(["mean"]), save_config=SaveConfig(save_interval=2))
    for _ in range(3):
        begin(hook)
        hook.save_tensor("mine", [1.0, 2.0], ["special", "default"])
    assert {at[0]: values["mine"].tolist() for at, values in saved(hook).items()} == {0: [1, 2], 2: [1, 2]}
    assert hook.get_collection("special").tensor_names == {"mine"}


def test_what_waits_in_a_parent_is_none_of_a_child_that_a_fork_has_made():
    hook = make(save_config=SaveConfig(save_interval=1))
    hook.save_tensor("mine", [1.0])
    hook.begin_anew()
    train(hook, 1)
    assert "mine" not in saved(hook)[(0, ModeKeys.GLOBAL, 0)]


def test_misuse_of_the_interface_is_an_error():
    hook = make()
    with pytest.raises(SMDebugValueError, match=r"Invalid mode TRAIN\. Valid modes are TRAIN,EVAL,PREDICT,GLOBAL\."):
        hook.set_mode("TRAIN")
    with pytest.raises(SMDebugTypeError):
        hook.add_collection("weights")
    with pytest.raises(SMDebugError, match="Collection nope has not been created"):
        hook.get_collection("nope", create=False)
    with pytest.raises(SMDebugValueError, match="include_workers is 'some', allowed are 'one' and 'all'"):
        make(include_workers="some")


def test_a_dry_run_writes_collections_and_the_end_but_no_step():
    hook = make(MemoryRun(dry_run=True))
    train(hook, 3)
    hook.save_scalar("x", 1)
    hook.close()
    assert hook._output.sink.steps == []
    assert hook._output.sink.collections
    assert hook._output.sink.ends == [True]


def test_the_collections_file_is_there_first_and_grows_with_the_names():
    hook = make(include_collections=["weights"], save_config=SaveConfig(save_interval=1))
    begin(hook)
    assert len(hook._output.sink.collections) == 1
    train(hook, 3)
    hook.close()
    assert len(hook._output.sink.collections) == 3
    assert "Net_conv.weight" in hook._output.sink.collections[1]


def test_a_folder_in_use_means_one_line_and_no_writing(capsys):
    hook = make(MemoryRun(owner="process 7"))
    train(hook, 600)
    assert hook._output.sink.steps == []
    assert capsys.readouterr().err.count("nothing is saved from worker_0: memory is not free for it (process 7)") == 1


def test_a_copy_of_a_training_process_has_a_run_once_it_trains():
    hook = make(save_config=SaveConfig(save_interval=1))
    train(hook, 2, ModeKeys.TRAIN)
    # As in a process that a fork has made: the step that is open is the parent's.
    hook.begin_anew()
    train(hook, 2, ModeKeys.EVAL)
    assert saved(hook) == {}
    assert not hook.writing
    train(hook, 1, ModeKeys.TRAIN)
    train(hook, 1, ModeKeys.EVAL)
    assert list(saved(hook)) == [(4, ModeKeys.TRAIN, 2), (5, ModeKeys.EVAL, 2)]
    hook.close()
    assert hook._output.sink.ends == [True]


def test_a_copy_of_a_process_that_saves_nothing_saves_nothing():
    hook = make(save_config=SaveConfig(save_interval=1))
    train(hook, 1)
    hook.disable()
    hook.begin_anew()
    train(hook, 2)
    assert saved(hook) == {}


def test_other_workers_write_only_when_all_are_asked_for():
    class Ranked(BaseHook):
        def worker(self):
            return 2, 4

    for workers, writes in (("one", False), ("all", True)):
        manager = CollectionManager(create_default=True, built_in=BUILT_IN)
        hook = Ranked(MemoryRun(), Selection(manager, ["losses"]), workers)
        train(hook, 1)
        assert bool(saved(hook)) == writes
        hook.close()
        # The first worker's end is the run's.
        assert hook._output.sink.ends == ([False] if writes else [])
        if writes:
            assert hook._output.sink.worker == "worker_2"
            assert '"num_workers": 4' in hook._output.sink.collections[0]


def test_a_disabled_hook_saves_nothing_more():
    hook = make(save_config=SaveConfig(save_interval=1))
    train(hook, 2)
    hook.disable()
    train(hook, 2)
    hook.save_scalar("x", 1)
    hook.close()
    assert len(hook._output.sink.steps) == 1


def test_a_collection_without_members_is_left_out_with_a_line(capsys):
    hook = make(include_collections=["wieghts", "biases"])
    hook.get_collection("wieghts")
    train(hook, 1)
    assert "Net_conv.bias" in next(iter(saved(hook).values()))
    assert capsys.readouterr().err.count("collection wieghts is left out") == 1


def test_collections_of_which_nothing_came_are_named_at_the_end(capsys):
    hook = make(include_collections=["biases", "mine"], save_config=SaveConfig(save_interval=1))
    hook.get_collection("mine").include("nothing like this")
    train(hook, 1)
    hook.close()
    assert capsys.readouterr().err.splitlines()[-2] == "smd_agent: no tensor of mine came up in a step that was saved"
    quiet = make()
    train(quiet, 1)
    quiet.close()
    assert "came up" not in capsys.readouterr().err


def test_facts_that_were_announced_and_never_came_are_named_too(capsys):
    facts = {"usage": ("^usage/",), "parameters": ("^parameters/",)}
    manager = CollectionManager(create_default=True, built_in={**BUILT_IN, **facts})
    every = SaveConfig(save_interval=1)
    hook = BaseHook(MemoryRun(), Selection(manager, ["losses"], save_config=every, include_collections=["all"]))
    train(hook, 1)
    hook.close()
    said = capsys.readouterr().err.splitlines()
    assert "usage, parameters" in said[0]
    assert said[-2] == "smd_agent: no tensor of usage, parameters came up in a step that was saved"


def test_why_collections_stay_empty_is_said_once_and_stands_in_the_run(capsys):
    hook = make(include_collections=["biases", "usage", "updates"], save_config=SaveConfig(save_interval=1))
    train(hook, 1)
    for _ in range(2):
        hook.recorder.cannot_save(["usage", "updates"], "it is a test")
    hook.recorder.cannot_save(["updates"], "it is another one")
    hook.recorder.cannot_have(["optimizer"], "nobody is told")
    train(hook, 1)
    hook.close()
    said = capsys.readouterr().err
    assert said.count("smd_agent: usage, updates cannot be saved: it is a test\n") == 1
    assert said.count("cannot be saved") == 1
    assert "came up" not in said
    written = CollectionManager.load_from_string(hook._output.sink.collections[-1])
    assert written.cannot_save == {
        "usage": "it is a test",
        "updates": "it is a test",
        "optimizer": "nobody is told",
    }
