"""Patches of PyTorch and wrappers that a program puts around them."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("torch")

import torch
from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

import smd_agent.pytorch as smd
from smd_agent import session
from smd_agent.core.modes import ModeKeys


@pytest.mark.parametrize("when", ["early", "late", "inside"])
@pytest.mark.parametrize("interval", [1, 2])
def test_wrappers_of_a_profiler_stay_and_count_as_without_the_agent(runner, when, interval):
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    both = run_both(runner, SUBJECTS / "pytorch/profiled.py", when, config=config, strict=True)
    assert_untouched(both)
    assert both.plain.stderr == ""
    assert "'backward': 6" in both.plain.stdout or when == "inside"


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
    trial = wrapped("pytorch/wrapped.py", order, replaced=REPLACED, how=how)
    assert "MSELoss_output_0" in trial.tensor_names(mode=ModeKeys.TRAIN) or how == "compiled"


@pytest.mark.parametrize("register", [register_optimizer_step_pre_hook, register_optimizer_step_post_hook])
@pytest.mark.parametrize("ending", ["a failure", "the next step", "another thread"])
def test_a_saved_step_may_end_while_an_optimizer_calls_its_hooks(out, register, ending):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1))
    model = torch.nn.Linear(5, 3)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    called = []

    def end(*_):
        called.append(hook.writing)
        if ending == "another thread":
            thread = threading.Thread(target=hook.finish_step)
            thread.start()
            thread.join()
        else:
            session.switch_off() if ending == "a failure" else hook.finish_step()

    handle = register(end)
    try:
        for _ in range(3):
            model(torch.ones(2, 5)).sum().backward()
            optimizer.step()
    finally:
        handle.remove()
    assert len(called) == 3
    hook.close()
    if ending != "a failure":
        assert smd.create_trial(hook.out_dir, timeout=0).steps() == [0, 1, 2]
