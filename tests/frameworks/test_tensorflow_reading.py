"""How values of TensorFlow's get into NumPy arrays, and which variables of a model they are read from."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("there is no tensorflow", allow_module_level=True)

from harness.compare import noted
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def test_values_of_all_kinds(runner):
    tree = {"PYTHONPATH": str(Path(sys.modules["smd_agent"].__file__).parent.parent)}
    result = runner.plain(SUBJECTS / "tensorflow/values.py", **QUIET, **tree)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["found"] == {
        "variable": ["float32", [2], [11.0, 12.0], None],
        "mirrored": ["float32", [1], [5.0], None],
        "of a layer": ["float32", [1, 2], [[1.0, 1.0]], None],
        "half": ["float16", [1], [0.5], None],
        "bfloat16": ["float32", [1], [0.5], "bfloat16"],
        "complex": ["float64", [1], [2.0], None],
        "text": ["<U1", [2], ["a", "ä"], None],
        "number": ["int32", [], 7, None],
        "empty": ["float32", [0, 3], [], None],
        "rows": ["float32", [3, 1], [[2.0], [0.0], [4.0]], None],
        "resource": None,
        "bytes": None,
        "none": None,
        "coarse rows": ["float32", [3, 1], [[1.0], [0.0], [257.0]], "bfloat16"],
        "scaled": ["float16", [1], [2.0], None],
        "scaled rows": [
            "float32",
            [3, 1],
            [[float(np.float32(1 / 3))], [0.0], [float(np.float32(257 / 3))]],
            "bfloat16",
        ],
        "not scaled": ["int32", [2, 2], [[1, 2], [3, 4]], None],
        "unreadable": None,
    }
    # Not copied, and yet what a variable was when it was read.
    assert told["same"] == [True, True]
    assert told["held"] == [1.0, 2.0]
    # In a graph there is nothing to read, and nothing is added to it.
    assert told["traced"] == [None, None, 0]


@pytest.mark.parametrize("interval", [1, 2])
def test_models_that_get_further_variables(interval, runner, tmp_path):
    settings = {
        "HookParameters": {"save_interval": interval},
        "CollectionConfigurations": [{"CollectionName": name} for name in ("weights", "biases")],
    }
    script = SUBJECTS / "keras/growing.py"
    result = runner.by_variable(script, str(tmp_path / "own.npz"), config=settings, **QUIET)
    assert result.returncode == 0, result.stderr
    assert "failed" not in result.stderr, result.stderr
    own: dict[tuple[int, str], list[bytes]] = {}
    for key, value in noted(tmp_path / "own.npz").items():
        step, model, _ = key.split()
        if int(step) % interval == 0:
            own.setdefault((int(step), model), []).append(value.tobytes())
    trial = create_trial(str(tmp_path / "run"))
    found: dict[tuple[int, str], list[bytes]] = {}
    for name in trial.tensor_names(regex="/weights/"):
        tensor = trial.tensor(name)
        for step in tensor.steps():
            found.setdefault((step, name.split("_")[0]), []).append(tensor.value(step).tobytes())
    # Where a model is built in its first step, the callback sees nothing of it before.
    assert found.keys() - own.keys() <= {(18, "late")}
    assert {step for step, _ in found} == set(range(0, 27, interval))
    for key, values in own.items():
        assert sorted(found[key]) == sorted(values), key
    assert len(own[26 // interval * interval, "late"]) == 4
