"""TensorFlow runs of ours, opened by the real smdebug 1.0.34."""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

import smd_agent
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)


def run(python, *words, **variables):
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD", "PYTHON"))}
    command = [python, "-W", "ignore", *map(str, words)]
    env = {**clean, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def differences(theirs, ours, place=()):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            yield from differences(theirs.get(key, "nothing"), ours.get(key, "nothing"), (*place, key))
    elif isinstance(theirs, float) and isinstance(ours, float):
        same = math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=1e-5) if "computed" in place else theirs == ours
        if not (same or (math.isnan(theirs) and math.isnan(ours))):
            yield (*place, theirs, ours)
    elif theirs != ours and not ("computed" in place and _is_missing(theirs) and _is_missing(ours)):
        yield (*place, theirs, ours)


def _is_missing(found):
    """Both say so of what was not saved, in words of their own."""
    return isinstance(found, tuple) and found[0] == "TensorUnavailableForStep"


@pytest.mark.parametrize("kind", ["tape", "tape reduced", "session", "session reduced"])
def test_their_trial_tells_what_ours_tells(kind, tmp_path):
    folder, told = tmp_path / "run", tmp_path / "told.pickle"
    run(sys.executable, HERE / "train_tensorflow.py", kind, folder, PYTHONPATH=str(Path(smd_agent.__file__).parents[1]))
    run(OLD_PYTHON, HERE / "trial_dump.py", folder, told)
    theirs = pickle.loads(told.read_bytes())
    ours = runpy.run_path(str(HERE / "trial_dump.py"))["dump"](create_trial(str(folder)), ModeKeys)
    assert list(differences(theirs, ours)) == []
    members = theirs["names by collection"]
    # Of a tensor that is reduced, the name is without the output's number.
    port = "" if kind.endswith("reduced") else ":0"
    if kind.startswith("session"):
        # Without a mode, as with the original; the loss is none of the fetches, and losses are never reduced.
        assert {mode: steps for mode, steps in theirs["steps"].items() if steps} == {"GLOBAL": [0, 2, 4]}
        assert members["weights"] == [f"layer/w{port}"]
        assert members["losses"] == ["mean_squared_error/value:0"]
        assert len(members["gradients"]) == 1
        assert {f"layer/w/Adam{port}", f"layer/w/Adam_1{port}"} <= {*members["optimizer_variables"]}
        return
    if kind == "tape":
        steps = theirs["tensors"]["loss"]["steps"]
        assert (steps["TRAIN"], steps["EVAL"]) == ([0, 2, 4], [0, 2])
    assert members["weights"] == [f"weights/dense/kernel{port}"]
    assert members["biases"] == [f"weights/dense/bias{port}"]
    assert members["gradients"] == ["gradients/dense/biasGrad", "gradients/dense/kernelGrad"]
    assert members["losses"] == ["loss"]
