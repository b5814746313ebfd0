"""Shares of the channels of what Gluon's blocks return, against the values that are saved beside them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "mxnet/channels.py"
CONFIG = {
    "HookParameters": {"save_interval": 1, "reductions": "dead_share,saturated_share", "save_raw_tensor": True},
    "CollectionConfigurations": [
        {"CollectionName": "outputs", "CollectionParameters": {"include_regex": ".*output"}},
        {"CollectionName": "weights"},
    ],
}
IMAGES = {"net_conv": 1, "net_norm": 1, "net_act": 1, "net_pool": 1, "net_gates": 1, "net": 1, "net_gates_sigmoid": 1}
AXES = {
    "images": IMAGES,
    "images_hybrid": IMAGES,
    "signals": {"net_conv": 1, "net_act": 1, "net": 1},
    "tokens": {"net_conv": 2, "net_fc": 2, "net_ln": 2, "net_act": 2, "net": 2},
    # An activation does not tell of three dimensions which of its neighbours it is like.
    "mixed": {"net_conv": 1, "net_fc": 2},
}


@pytest.mark.parametrize("kind", AXES)
def test_channels_are_where_the_layers_have_them(runner, kind):
    result = runner.by_variable(PROGRAM, kind, config=CONFIG)
    assert result.returncode == 0, result.stderr
    trial = create_trial(str(runner.folder / "run"))
    (step,) = trial.steps(mode=ModeKeys.TRAIN)
    found = {}
    for name in trial.tensor_names():
        for (share, _), value in trial.tensor(name).reduction_values(step, mode=ModeKeys.TRAIN).items():
            found.setdefault(name.removesuffix("_output_0"), {})[share] = value
    assert found.keys() == AXES[kind].keys()
    for name, axis in AXES[kind].items():
        value = trial.tensor(f"{name}_output_0").value(step, mode=ModeKeys.TRAIN)
        channels = np.moveaxis(value, axis, 0).reshape(value.shape[axis], -1)
        assert found[name]["dead_share"] == np.mean([not channel.any() for channel in channels]), name
    if kind.startswith("images"):
        assert found["net_gates"]["saturated_share"] == 0.4
        assert found["net_act"]["dead_share"] >= 3 / 8
    if kind == "tokens":
        assert found["net_act"]["dead_share"] >= 3 / 8
