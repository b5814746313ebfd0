"""Schedulers of PyTorch in a program that names no hook: they work as without the agent, and what is saved of them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both

PROGRAM = """
import copy
import gc
import inspect
import pickle
import warnings
import weakref

import torch
from torch import nn
from torch.optim import lr_scheduler

warnings.simplefilter("always")


class Own(lr_scheduler.LRScheduler):
    def __init__(self, optimizer, factor):
        self.factor = factor
        super().__init__(optimizer)

    def get_lr(self):
        return [rate * self.factor**self.last_epoch for rate in self.base_lrs]


class OwnLine(lr_scheduler.LinearLR):
    pass


def in_turn(optimizer):
    parts = [lr_scheduler.ConstantLR(optimizer, 0.1, 2), lr_scheduler.CosineAnnealingLR(optimizer, 30)]
    return lr_scheduler.SequentialLR(optimizer, parts, [2])


def replaced(optimizer):
    first = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=50)
    return first, lr_scheduler.PolynomialLR(optimizer, total_iters=9)


def endless(optimizer):
    first = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=50)
    return first, lr_scheduler.ExponentialLR(optimizer, 0.9)


KINDS = {
    "SGD": lambda optimizer: Own(optimizer, 0.9),
    "Adam": in_turn,
    "AdamW": replaced,
    "RMSprop": endless,
    "Adagrad": lambda optimizer: OwnLine(optimizer),
    "NAdam": lambda optimizer: lr_scheduler.LinearLR(optimizer, total_iters=7),
}
layers = [nn.Linear(3, 3) for _ in KINDS]
model = nn.Sequential(*layers)
optimizers = [getattr(torch.optim, name)(one.parameters(), lr=0.1) for name, one in zip(KINDS, layers)]
made = [make(optimizer) for make, optimizer in zip(KINDS.values(), optimizers)]
last = [one[-1] if isinstance(one, tuple) else one for one in made]
print(inspect.signature(lr_scheduler.LRScheduler.__init__), lr_scheduler.SequentialLR.__init__.__qualname__)
# Out of order: it warns, of the line of the program.
lr_scheduler.StepLR(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1), 1).step()
try:
    lr_scheduler.SequentialLR(optimizers[0], [last[0]], [1, 2, 3])
except ValueError as error:
    print(error)
try:
    lr_scheduler.StepLR("no optimizer", 1)
except TypeError as error:
    print(error, error.__traceback__.tb_next.tb_frame.f_code.co_filename.endswith("lr_scheduler.py"))
for step in range(4):
    for optimizer in optimizers:
        optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    for optimizer, schedule in zip(optimizers, last):
        optimizer.step()
        schedule.step()
    print(step, [schedule.get_last_lr() for schedule in last])
twin = copy.deepcopy(last[-1])
twin.load_state_dict(pickle.loads(pickle.dumps(last[-1].state_dict())))
twin.step()
print(twin.get_last_lr(), twin.last_epoch)
references = [weakref.ref(one) for one in last]
del made, last, schedule
gc.collect()
print([reference() is None for reference in references])
for _ in range(2):
    model(torch.ones(2, 3)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
"""


def test_schedulers_work_as_without_the_agent_and_what_is_saved_of_them(runner):
    script = runner.write(PROGRAM)
    config = {"HookParameters": {"save_interval": 1, "include_collections": "usage"}}
    both = run_both(runner, script, config=config, strict=True)
    assert_untouched(both)
    assert "True, True" in both.plain.stdout.splitlines()[-1]
    trial = both.trial
    names = [name for name in trial.tensor_names(collection="usage") if "/schedule_" in name]
    found = {name.removeprefix("usage/optimizer/"): trial.tensor(name) for name in names}
    values = {name: [float(one.value(step)) for step in one.steps()] for name, one in found.items()}
    # Of none that is gone there is anything.
    steps = [0.0, 1.0, 2.0, 3.0]
    assert values == {
        "Adam/schedule_length": [32.0] * 4,
        "Adam/schedule_steps": steps,
        "AdamW/schedule_length": [9.0] * 4,
        "AdamW/schedule_steps": steps,
        "NAdam/schedule_length": [7.0] * 4,
        "NAdam/schedule_steps": steps,
    }
