"""What fails in each step costs its domain, and nothing else: the training, all other tensors, and the run's words."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest
from harness.runner import SITE_HOOK

from robustness.faults import START
from robustness.jobs import XGBOOST_AGAIN, XGBOOST_STORED
from robustness.survival import said_by
from robustness.training import GLUON, KERAS, PYTORCH, XGBOOST, Training
from smd_agent.core.modes import ModeKeys

# A function of ours that fails in each call, what is lost with it, and the domain that is switched off.
CASES = {
    "PyTorch's weights": (PYTORCH, "pytorch/capture/weights.py:Weights._write", "weights", "weights"),
    "PyTorch's gradients": (PYTORCH, "pytorch/capture/gradients.py:Gradients.after_backward", "gradients", "gradients"),
    "PyTorch's losses": (PYTORCH, "pytorch/capture/losses.py:Losses.before_backward", "losses", "losses"),
    "all of PyTorch's losses": (PYTORCH, "pytorch/capture/losses.py:Losses._save", "losses", "losses"),
    "PyTorch's inputs": (PYTORCH, "framework/model_inputs.py:numbers_of", "all else", "inputs' scales"),
    "PyTorch's digests": (PYTORCH, "pytorch/capture/fact_adapters.py:digest_of", "all else", "input digests"),
    "PyTorch's updates": (PYTORCH, "framework/weight_changes.py:WeightChanges._remember", "all else", "updates"),
    "PyTorch's layers": (
        PYTORCH,
        "pytorch/capture/layer_values.py:Layers.before_layer",
        "all else",
        "inputs and outputs",
    ),
    "Keras's weights": (KERAS, "framework/keras/variables.py:ModelVariables.weights", "weights", "weights"),
    "Keras's inputs": (KERAS, "framework/keras/facts.py:_Inputs._save", "all else", "inputs' scales"),
    "Keras's logs": (KERAS, "framework/keras/saved_step.py:KerasCapture._save_logs", "losses", "losses"),
    "Keras's notes": (
        KERAS,
        "tensorflow/keras_fit/step_capture.py:TensorflowCapture._was_called",
        "",
        "facts of losses",
    ),
    "Gluon's gradients": (GLUON, "mxnet/gradients.py:Gradients._write", "gradients", "gradients"),
    "Gluon's inputs": (GLUON, "framework/model_inputs.py:numbers_of", "all else", "inputs' scales"),
    "XGBoost's trees": (XGBOOST, "xgboost/library.py:XGBoost.trees", "all else", ""),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Give a training that has been run without a failure, and a folder for it."""
    known: dict[int, Path] = {}
    changed = pytest.MonkeyPatch()
    # For what has the functions fail.
    changed.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    # What is prepared keeps its process quiet and impatient, which is this one here.
    for name in ("SMDEBUG_TRAINING_END_DELAY_REFRESH", "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"):
        changed.setenv(name, "0")
    logger = logging.getLogger("smd_agent")
    level = logger.level

    def prepare(training: Training) -> Path:
        if training.missing:
            pytest.skip("there is no interpreter with it")
        if id(training) not in known:
            known[id(training)] = tmp_path_factory.mktemp("training")
            training.prepare(known[id(training)])
        return known[id(training)]

    yield prepare
    changed.undo()
    logger.setLevel(level)


@pytest.mark.parametrize("name", CASES)
def test_what_fails_in_each_step_costs_itself_alone(name, prepared):
    training, function, lost, domain = CASES[name]
    folder = prepared(training)
    fault = json.dumps({"function": function, "call": None, "site_hook": str(SITE_HOOK)})
    ended = training.run(folder, START, name=name.replace(" ", "_"), ROBUSTNESS_FAULT=fault)
    lines = training.check_untouched(ended)
    root = folder / name.replace(" ", "_")
    found = training.check_values(root, complete=False)
    missing = {training.kinds[key[0]] for key in training.whole if key not in found}
    assert missing <= {lost, "all else"}
    assert lost in missing or not lost
    assert sum(f"{domain} " in line and "any more" in line for line in lines) == bool(domain), lines
    assert not any("capture is off" in line for line in lines)
    for command in ("check", "ls", "show", "info"):
        shown = said_by(command, root)
        assert any(line.startswith("Failed ") for line in shown[:3]), (command, shown)
        assert not any("cut off" in line for line in shown)


# What is tried a second time where it fails: then nothing is missing.
TWICE = {
    "the start of the process": (GLUON, "config/env.py:launch_pid"),
    "Gluon's search, when the block has become known": (GLUON, "mxnet/hook.py:Hook.count_call"),
    "Gluon's update": (GLUON, "mxnet/trainer_watch.py:_Updates._wrap_update.update"),
    "XGBoost's rounds": (XGBOOST, "xgboost/hook.py:Hook.rounds"),
    "XGBoost, once its functions are replaced": (
        XGBOOST,
        "patches/nothing_captured.py:warn_at_exit_if_nothing_captured",
    ),
    "the notes of checkpoints": (XGBOOST_AGAIN, "storage/state_keeper.py:read_states"),
    "an upload": (XGBOOST_STORED, "storage/uploads.py:Uploads._upload"),
    "the choice of what is uploaded": (XGBOOST_STORED, "storage/store_thread.py:UploadQueue.batch"),
}


@pytest.mark.parametrize("name", TWICE)
def test_what_fails_once_where_a_training_begins_costs_nothing(name, prepared):
    training, function = TWICE[name]
    folder = prepared(training)
    fault = json.dumps({"function": function, "call": 1, "fired": str(folder / "fired"), "site_hook": str(SITE_HOOK)})
    shutil.rmtree(folder / "run", ignore_errors=True)
    ended = training.run(folder, START, ROBUSTNESS_FAULT=fault)
    assert not any(" not in s3:" in line for line in training.check_untouched(ended))
    (folder / "fired").unlink()
    assert training.check_values(training.root(folder)).keys() == training.whole.keys()


def test_steps_of_gluon_are_counted_from_the_first_one_on_where_that_is_not_seen(prepared):
    folder = prepared(GLUON)
    function = "mxnet/model_finder.py:BlockFinder._call"
    fault = json.dumps({"function": function, "call": 1, "fired": str(folder / "fired"), "site_hook": str(SITE_HOOK)})
    ended = GLUON.run(folder, START, name="unseen", ROBUSTNESS_FAULT=fault)
    (folder / "fired").unlink()
    assert any("the first step may be incomplete" in line for line in GLUON.check_untouched(ended))
    found = GLUON.check_values(folder / "unseen", complete=False)
    needed = {key for key in GLUON.whole if GLUON.kinds[key[0]] != "all else"}
    assert {key for key in needed - found.keys() if key[1] is ModeKeys.TRAIN} == {
        key for key in needed if key[1:] == (ModeKeys.TRAIN, 0)
    }


COUNTED = {"PyTorch": PYTORCH, "Gluon": GLUON}


@pytest.mark.parametrize("framework", COUNTED)
def test_a_step_is_counted_where_the_one_before_it_could_not_be_closed(framework, prepared):
    training = COUNTED[framework]
    folder = prepared(training)
    # The third step to be closed, as the fourth begins; what is closed is called by this function.
    fault = {"function": "interpreter/stack_room.py:in_room", "call": 3, "fired": str(folder / "fired")}
    fault = json.dumps({**fault, "site_hook": str(SITE_HOOK)})
    ended = training.run(folder, START, name="unclosed", ROBUSTNESS_FAULT=fault)
    (folder / "fired").unlink()
    assert any("step 2 may be incomplete" in line for line in training.check_untouched(ended))
    # The values that are there are those of the steps with these numbers.
    found = training.check_values(folder / "unclosed", complete=False)
    needed = {key for key in training.whole if training.kinds[key[0]] != "all else"}
    assert {key[1:] for key in needed - found.keys() if key[1] is ModeKeys.TRAIN} == {(ModeKeys.TRAIN, 3)}
