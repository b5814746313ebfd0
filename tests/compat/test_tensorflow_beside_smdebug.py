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
    elif theirs != ours:
        yield (*place, theirs, ours)


@pytest.mark.parametrize("kind", ["tape", "reductions", "session"])
def test_their_trial_tells_what_ours_tells(kind, tmp_path):
    folder, told = tmp_path / "run", tmp_path / "told.pickle"
    run(sys.executable, HERE / "train_tensorflow.py", kind, folder, PYTHONPATH=str(Path(smd_agent.__file__).parents[1]))
    run(OLD_PYTHON, HERE / "trial_dump.py", folder, told)
    theirs = pickle.loads(told.read_bytes())
    ours = runpy.run_path(str(HERE / "trial_dump.py"))["dump"](create_trial(str(folder)), ModeKeys)
    assert list(differences(theirs, ours)) == []
    members = theirs["names by collection"]
    if kind == "session":
        # Without a mode, as with the original; the loss is none of the fetches.
        assert {mode: steps for mode, steps in theirs["steps"].items() if steps} == {"GLOBAL": [0, 2, 4]}
        assert "layer/w:0" in members["weights"]
        assert members["losses"] == ["mean_squared_error/value:0"]
        assert len(members["gradients"]) == 1
        assert len(members["optimizer_variables"]) == 4
        return
    if kind == "tape":
        steps = theirs["tensors"]["loss"]["steps"]
        assert (steps["TRAIN"], steps["EVAL"]) == ([0, 2, 4], [0, 2])
    assert members["weights"] == ["weights/dense/kernel:0"]
    assert members["biases"] == ["weights/dense/bias:0"]
    assert members["gradients"] == ["gradients/dense/biasGrad", "gradients/dense/kernelGrad"]
    assert members["losses"] == ["loss"]
