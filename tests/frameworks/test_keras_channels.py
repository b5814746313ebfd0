"""Shares of the channels of what Keras's layers return, against the values that are saved beside them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("there is no Keras", allow_module_level=True)

from harness.keras_ways import variables_of
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "keras/channels.py"
TRAIN = ModeKeys.TRAIN
BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"there is no {name}"))
    for name in ("tensorflow", "torch")
]
CONFIG = {
    "HookParameters": {"save_interval": 1, "reductions": "dead_share,saturated_share", "save_raw_tensor": True},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("outputs", "layers", "weights")],
}


def run(runner, backend, *args):
    result = runner.by_variable(PROGRAM, *args, config=CONFIG, **variables_of(backend))
    assert result.returncode == 0, result.stderr
    return create_trial(str(runner.folder / "run"))


def check(trial, axes):
    """Compare all shares that are stored; ``axes`` has those of the channels, of the outputs that have them."""
    found = {}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for (kind, _), share in tensor.reduction_values(0, mode=TRAIN).items():
            found.setdefault(name, {})[kind] = share
    assert found.keys() == axes.keys()
    for name, axis in axes.items():
        value = trial.tensor(name).value(0, mode=TRAIN)
        channels = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
        assert found[name]["dead_share"] == np.mean([not channel.any() for channel in channels])
    return {name: shares["saturated_share"] for name, shares in found.items()}


@pytest.mark.parametrize("backend", BACKENDS)
def test_channels_are_last(runner, backend):
    trial = run(runner, backend)
    names = ["predictions", *(f"{name}/outputs" for name in ("conv", "act", "norm", "pool", "gates", "head"))]
    held = check(trial, dict.fromkeys(names, -1))
    assert held["gates/outputs"] == 0.4
    assert trial.tensor("act/outputs").reduction_value(0, "dead_share", TRAIN) >= 3 / 8
    assert not any(share for name, share in held.items() if name != "gates/outputs")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="TensorFlow has none on the CPU")
def test_channels_are_first_where_the_layers_say_so(runner):
    trial = run(runner, "torch", "first")
    axes = {"conv": 1, "norm": 1, "pool": 1, "gates": -1, "head": -1}
    # An activation does not tell where its images have their channels.
    check(trial, {"predictions": -1, **{f"{name}/outputs": axis for name, axis in axes.items()}})
    assert trial.tensor("conv/outputs").reduction_value(0, "dead_share", TRAIN) >= 3 / 8
