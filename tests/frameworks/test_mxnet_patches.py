"""Patches of MXNet and wrappers that a program puts around them."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys


@pytest.mark.parametrize("wrapped", ["alike", "bare"])
def test_a_wrapper_around_backward_invents_no_losses(runner, wrapped):
    script = runner.script("gluon_profiled.py")
    plain = runner.plain(script, wrapped)
    config = {
        "HookParameters": {"save_interval": 1},
        "CollectionConfigurations": [{"CollectionName": "losses"}],
    }
    agent = runner.by_variable(script, wrapped, config=config, SMD_AGENT_STRICT="1")
    assert plain.returncode == 0, plain.stderr
    assert "'backward': 4" in plain.stdout
    assert (agent.returncode, agent.stdout) == (0, plain.stdout), agent.stderr
    trial = create_trial(str(runner.folder / "run"))
    assert trial.tensor_names() == ["loss0_output_0"]
    assert trial.tensor("loss0_output_0").steps() == [0, 1, 2, 3, 4, 5]


# What must be among the replaced functions at each moment, for the moments to be what they are called.
SAVING = {
    ("mxnet.ndarray.ndarray:NDArray", "backward"),
    ("mxnet.gluon.trainer:Trainer", "_allreduce_grads"),
    ("mxnet.gluon.trainer:Trainer", "_update"),
}
REPLACED = {
    "found": {("mxnet.gluon.block:HybridBlock", "_get_graph")},
    "opened": {*SAVING, ("mxnet.gluon.parameter:Parameter", "_finish_deferred_init")},
    "tracing": {("mxnet.gluon.block:HybridBlock", "_build_cache")},
    "inside": SAVING,
}


@pytest.mark.parametrize("order", ["first", "last"])
def test_whoever_wraps_a_patch_changes_nothing_and_is_left_alone(wrapped, order):
    names = wrapped("gluon_wrapped.py", order, replaced=REPLACED)
    assert {"net_dense0_weight", "gradient/net_dense1_bias", "l2_output_0"} <= {*names[ModeKeys.TRAIN]}
