"""What is told of ``load_state_dict(strict=False)`` in scripts that nobody edited."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both

PRELUDE = """
import torch, warnings
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
    def forward(self, x): return self.head(self.norm(self.body(x)))

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(16, 5)).square().mean().backward()
        optimizer.step()
    print([round(float(value.double().sum()), 6) for value in model.state_dict().values()])

other = Net().state_dict()
named = {f"module.{name}": value for name, value in other.items()}
model = Net()
"""
OWN = 8
NAMES = ["body.weight", "body.bias", "norm.weight"]
NOTHING = {
    "given": 9,
    "own": OWN,
    "loaded": 0,
    "not_taken": [f"module.{name}" for name in NAMES],
    "missing": NAMES,
}
LITTLE = {"given": 4, "own": OWN, "loaded": 1, "not_taken": ["a", "b", "c"], "missing": NAMES}
TOLD = {
    "print(model.load_state_dict(named, strict=False))": {"Net": NOTHING},
    "print(model.load_state_dict(named, False))": {"Net": NOTHING},
    "model.load_state_dict(assign=False, strict=False, state_dict=named)": {"Net": NOTHING},
    "nn.DataParallel(model).load_state_dict(other, strict=False)": {
        "Net": {**NOTHING, "not_taken": NAMES, "missing": NOTHING["not_taken"]}
    },
    "for _ in range(2): model.load_state_dict(named, strict=False)": {"Net": NOTHING},
    "others = [Net() for _ in range(20)]\nfor one in others: one.load_state_dict(named, strict=False)": {
        "Net": NOTHING,
        **{f"Net_{number}": NOTHING for number in range(2, 17)},
    },
    "model.load_state_dict({**dict.fromkeys('abc'), 'head.bias': other['head.bias']}, strict=False)": {"Net": LITTLE},
    # What is usual.
    "model.load_state_dict(other, strict=False)": {},
    "model.load_state_dict({'head.bias': other['head.bias']}, strict=False)": {},
    "model.load_state_dict({**other, **named, **dict.fromkeys('abc')}, strict=False)": {},
    "model.load_state_dict({k: v for k, v in other.items() if 'head' not in k} | {'fc.weight': 0}, strict=False)": {},
    "model.load_state_dict({}, strict=False)": {},
    "nn.ReLU().load_state_dict(named, strict=False)": {},
    "Net().load_state_dict(named, strict=False)": {},
    # Who notices it repairs it.
    "model.load_state_dict(named, strict=False); model.load_state_dict(other)": {},
    "model.load_state_dict(named, strict=False); model.body.load_state_dict(nn.Linear(5, 8).state_dict())": {},
    "model.load_state_dict(named, strict=False); Net().load_state_dict(other)": {"Net": NOTHING},
    "try: model.load_state_dict(named)\nexcept RuntimeError as e: print(e, e.__traceback__.tb_next.tb_lineno)": {},
}


@pytest.mark.parametrize("body", TOLD)
def test_loads_of_which_next_to_nothing_was_taken(runner, body):
    script = runner.write(f"{PRELUDE}\n{body}\ntrain(model)\n")
    config = {"CollectionConfigurations": [{"CollectionName": "parameters"}], "HookParameters": {"save_interval": 1}}
    both = run_both(runner, script, config=config, strict=True)
    assert_untouched(both)
    trial = both.trial
    found = {name: trial.tensor(name) for name in trial.tensor_names(regex="^loads/")}
    assert {tuple(tensor.steps()) for tensor in found.values()} <= {(0,)}
    told = {name.removeprefix("loads/"): json.loads(tensor.value(0)[0]) for name, tensor in found.items()}
    assert told == TOLD[body]


def test_a_module_that_is_let_go_can_go(runner):
    script = runner.write(
        PRELUDE
        + """
import weakref, gc
gone = Net()
gone.load_state_dict(named, strict=False)
gone = weakref.ref(gone)
gc.collect()
print(gone())
train(model)
"""
    )
    both = run_both(runner, script, config={"HookParameters": {"save_all": True}}, strict=True)
    assert_untouched(both)
    assert both.agent.stdout.startswith("None")
    assert both.trial.tensor_names(regex="^loads/") == []
