"""Patches of PyTorch and wrappers that a program puts around them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from smd_agent.core.modes import ModeKeys


@pytest.mark.parametrize("when", ["early", "late", "inside"])
@pytest.mark.parametrize("interval", [1, 2])
def test_wrappers_of_a_profiler_stay_and_count_as_without_the_agent(runner, when, interval):
    script = runner.script("torch_profiled.py")
    plain = runner.plain(script, when)
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    agent = runner.by_variable(script, when, config=config, SMD_AGENT_STRICT="1")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert "'backward': 6" in plain.stdout or when == "inside"
    assert (agent.returncode, agent.stdout) == (0, plain.stdout), agent.stderr


# What must be among the replaced functions at each moment, for the moments to be what they are called.
REPLACED = {
    "imported": {("torch.optim.optimizer:Optimizer", "add_param_group"), ("torch", "compile")},
    "armed": {
        ("torch.autograd", "backward"),
        ("torch.autograd", "grad"),
        ("torch.nn.modules.module:Module", "__call__"),
    },
    "inside": {
        ("torch.autograd", "backward"),
        ("torch.amp.grad_scaler:GradScaler", "scale"),
        ("torch.amp.grad_scaler:GradScaler", "unscale_"),
        ("torch.nn.modules.loss:_Loss", "__call__"),
    },
    "evaluating": {("torch._C._nn", "mse_loss"), ("torch._C._nn", "l1_loss")},
}


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_whoever_wraps_a_patch_changes_nothing_and_is_left_alone(wrapped, order, how):
    names = wrapped("torch_wrapped.py", order, replaced=REPLACED, how=how)
    assert "MSELoss_output_0" in names[ModeKeys.TRAIN] or how == "compiled"
