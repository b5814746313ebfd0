"""Patches of MXNet and wrappers that a program puts around them."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys


@pytest.mark.parametrize("wrapped", ["alike", "bare"])
def test_a_wrapper_around_backward_invents_no_losses(runner, wrapped):
    config = {
        "HookParameters": {"save_interval": 1},
        "CollectionConfigurations": [{"CollectionName": "losses"}],
    }
    both = run_both(runner, SUBJECTS / "mxnet/profiled.py", wrapped, config=config, strict=True)
    assert_untouched(both)
    assert "'backward': 4" in both.plain.stdout
    assert both.trial.tensor_names() == ["loss0_output_0"]
    assert both.trial.tensor("loss0_output_0").steps() == [0, 1, 2, 3, 4, 5]


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
    names = {*wrapped("mxnet/wrapped.py", order, replaced=REPLACED).tensor_names(mode=ModeKeys.TRAIN)}
    assert {"net_dense0_weight", "gradient/net_dense1_bias", "l2_output_0"} <= names
