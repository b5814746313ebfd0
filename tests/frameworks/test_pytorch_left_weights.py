"""The weights as a PyTorch training leaves them, which are in the run's last step."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS

import smd_agent.pytorch as smd
from smd_agent import session
from smd_agent.core.failure_domains import failures
from smd_agent.core.modes import ModeKeys
from smd_agent.core.overhead import overhead
from smd_agent.framework import left_weights
from smd_agent.pytorch.model import gone_models

SCRIPT = SUBJECTS / "pytorch/left_weights.py"
CONFIG = {
    "HookParameters": {"save_interval": 10, "save_last": True},
    "CollectionConfigurations": [{"CollectionName": "all"}],
}
ENDS = ("error", "exit", "SIGINT", "SIGTERM")


def run(runner, *words, config=CONFIG):
    both = run_both(runner, SCRIPT, *words, config=config, strict=True)
    assert_untouched(both, code=None)
    return both


def left_in(runner, trial, step):
    """Assert that a step has the weights that the program has left, and nothing else."""
    with np.load(runner.folder / "weights.npz") as left:
        assert {*trial.tensor_names(step=step, mode=ModeKeys.TRAIN)} == {f"Net_{name}" for name in left}
        for name, value in left.items():
            assert np.array_equal(trial.tensor(f"Net_{name}").value(step, mode=ModeKeys.TRAIN), value), name


def test_the_step_behind_the_last_one_has_the_weights_that_are_left(runner):
    both = run(runner)
    assert both.plain.returncode == 0
    # An evaluation has come in between.
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0, 10, 20, 25]
    assert both.trial.steps(mode=ModeKeys.EVAL) == [0]
    assert both.trial.steps() == [0, 10, 20, 25, 26]
    left_in(runner, both.trial, 25)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("amid", [False, True])
def test_a_training_that_is_ended_leaves_them_too(runner, end, amid):
    both = run(runner, "--end", end, *(["--amid"] if amid else []))
    assert both.plain.returncode
    # Those of step 17, which has begun or would have.
    assert both.trial.steps() == [0, 10, 17]
    left_in(runner, both.trial, 17)


def test_a_model_that_goes_with_its_function_has_left_them(runner):
    both = run(runner, "--function")
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0, 10, 20, 25]
    left_in(runner, both.trial, 25)


@pytest.mark.parametrize(
    "words", ["loaded", "assigned", "averaged", "double", "loaded --function", "averaged --function"]
)
def test_weights_that_the_program_has_changed_are_not_saved(runner, words):
    both = run(runner, "--change", *words.split())
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0, 10, 20]


def test_a_step_that_is_saved_anyhow_has_them(runner):
    both = run(runner, "--end", "error", "--amid", "--stop-at", "20")
    assert both.trial.steps() == [0, 10, 20]
    assert {"losses", "weights"} <= {
        name for name in both.trial.collections() if both.trial.tensor_names(step=20, collection=name)
    }


def test_they_are_saved_as_all_weights_are(runner):
    parameters = {**CONFIG["HookParameters"], "reductions": "mean,std", "save_raw_up_to": 3}
    both = run(runner, config={**CONFIG, "HookParameters": parameters})
    with np.load(runner.folder / "weights.npz") as left:
        for name, value in left.items():
            tensor = both.trial.tensor(f"Net_{name}")
            if value.size <= 3:
                assert np.array_equal(tensor.value(25, mode=ModeKeys.TRAIN), value)
            else:
                mean = tensor.reduction_value(25, "mean", mode=ModeKeys.TRAIN)
                assert mean == pytest.approx(value.mean(dtype=np.float64), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(
    "parameters, collection",
    [({"save_interval": 10}, "all"), ({"save_interval": 10, "save_last": True}, "gradients")],
)
def test_nothing_is_saved_that_nobody_has_asked_for(runner, parameters, collection):
    config = {"HookParameters": parameters, "CollectionConfigurations": [{"CollectionName": collection}]}
    both = run(runner, config=config)
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0, 10, 20]


def train(hook, steps=5):
    net = torch.nn.Linear(4, 1)
    hook.register_module(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(3, 4)).mean().backward()
        optimizer.step()
    return net, optimizer


@pytest.mark.parametrize("longest, steps", [(5.0, [0, 2, 4, 5]), (-1.0, [0, 2, 4])])
def test_nobody_waits_long_for_them(out, monkeypatch, longest, steps):
    monkeypatch.setattr(left_weights, "LONGEST", longest)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["weights"])
    hook.saves_last = True
    kept = train(hook)
    hook.close()
    assert smd.create_trial(out).steps() == steps
    assert kept


def test_the_time_of_hooks_that_the_program_has_let_go_of_is_that_of_their_steps(out, monkeypatch):
    monkeypatch.setattr(failures, "saved_steps", 10)
    monkeypatch.setattr(overhead, "_seconds", 20.0)
    session.forget()
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["weights"])
    hook.saves_last = True
    kept = train(hook)
    hook.close()
    assert smd.create_trial(out).steps() == [0, 2, 4, 5]
    assert kept


def test_models_are_not_kept_and_large_ones_leave_nothing(out, monkeypatch):
    monkeypatch.setattr(gone_models, "LARGEST", 10)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["weights"])
    hook.saves_last = True
    net, optimizer = train(hook)
    references = [weakref.ref(one) for one in (net, *net.parameters())]
    del net, optimizer
    assert [one() for one in references] == [None] * 3
    hook.close()
    assert smd.create_trial(out).steps() == [0, 2, 4]


def test_a_training_that_follows_is_not_mistaken_for_the_one_before(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=100), include_collections=["weights"])
    hook.saves_last = True
    train(hook)
    net, _ = train(hook)
    hook.close()
    trial = smd.create_trial(out)
    assert trial.steps() == [0, 10]
    assert np.array_equal(trial.tensor("Linear_weight").value(10), net.weight.detach().numpy())


def test_a_forked_child_that_does_not_train_writes_none(runner):
    script = runner.write(
        """
import os, torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(5):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(torch.ones(3, 4)), torch.ones(3, 1)).backward()
    optimizer.step()
    if step == 3:
        child = os.fork()
        if not child:
            raise SystemExit(7)
        print(os.waitpid(child, 0)[1] >> 8)
"""
    )
    both = run_both(runner, script, config=CONFIG, strict=True)
    assert_untouched(both)
    assert both.trial.steps() == [0, 5]
    assert [path.name for path in runner.folder.glob("run*")] in (["run"], ["run", "run.json"], ["run.json", "run"])
