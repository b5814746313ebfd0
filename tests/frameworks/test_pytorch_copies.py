"""A model that the program copies, pickles, saves, scripts and looks at has nothing of ours on it, at no time."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from harness.compare import assert_untouched, noted, run_both
from harness.runner import SUBJECTS
from torch import nn
from torch.utils.hooks import RemovableHandle

import smd_agent.pytorch as smd
from smd_agent.core.modes import ModeKeys

EVERY = smd.SaveConfig(save_interval=1)


@pytest.mark.parametrize("interval", [1, 3])
def test_a_model_that_saves_itself_everywhere_is_as_without_us_and_captured(runner, interval):
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    file = runner.folder / "values.npz"
    both = run_both(runner, SUBJECTS / "pytorch/saves_itself.py", file, config=config, strict=True)
    assert_untouched(both)
    values = noted(file)
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [*range(0, 24, interval)]
    for step in range(0, 24, interval):
        # After the module's own hooks, which change what it is given.
        for name in ("second_input_0", "last_input_0"):
            saved = both.trial.tensor(name).value(step, mode=ModeKeys.TRAIN)
            np.testing.assert_array_equal(saved, values[f"{name}@{step}"])
        gradient = both.trial.tensor("gradient/Model_last.weight")
        assert gradient.value(step, mode=ModeKeys.TRAIN).any()


class CopiesItself(nn.Module):
    """Makes its target when it is called first, as BYOL does."""

    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
        self.target = None
        self.scripted = None

    def forward(self, x):
        result = self.online(x)
        if self.target is None:
            self.target = copy.deepcopy(self.online)
            self.scripted = [torch.jit.script(self.online)]
        assert torch.equal(self.scripted[0](x), result)
        return result - self.target(x + 1)


def test_a_part_that_is_copied_inside_of_forward_can_be_saved_ever_after(out):
    model = CopiesItself()
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    for _ in range(2):
        model(torch.randn(6, 5)).sum().backward()
    model.scripted = None
    assert b"smd_agent" not in pickle.dumps(model)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    hook.close()
    names = smd.create_trial(out).tensor_names()
    assert {"online.0_input_0", "online.0_output_0", "CopiesItself_output_0"} <= {*names}


@pytest.mark.parametrize("kind", [nn.Linear, nn.LazyLinear])
def test_a_counter_is_on_no_module_and_leaves_the_class_with_it(out, kind):
    def attributes():
        return [sorted(dir(one)) for one in (kept[0], other, kind, nn.Linear)]

    model, other = kind(*[3] * (1 + (kind is nn.Linear))), nn.Linear(3, 3)
    kept = [model]
    names = attributes()
    before = {**vars(model)}
    hook = smd.Hook(out, save_config=EVERY)
    hook.register_module(model)
    assert vars(model) == before
    assert attributes() == names
    x = torch.ones(2, 3)
    with torch.no_grad():
        for step in range(3):
            model(x)
            assert hook.step == step
            other(x)
            copy.deepcopy(model)(x)
    assert hook.step == 2
    assert "_compiled_call_impl" not in vars(model)
    assert type(model) is nn.Linear
    assert other._compiled_call_impl is None
    kept.clear()
    del model
    gc.collect()
    assert not any("_compiled_call_impl" in vars(one) for one in (nn.Linear, nn.LazyLinear))
    hook.close()


def test_what_copies_a_dict_counts_no_steps(out):
    model = nn.Linear(3, 2)
    hook = smd.Hook(out, save_config=EVERY)
    hook.register_module(model)
    clone = nn.Linear.__new__(nn.Linear)
    clone.__dict__ = model.__dict__.copy()
    clone._parameters = {name: p.detach() * 2 for name, p in model._parameters.items()}
    x = torch.randn(4, 3)
    model(x)
    for _ in range(3):
        torch.testing.assert_close(clone(x), 2 * model.forward(x))
    assert hook.step == 0
    hook.close()


def test_a_class_that_is_pickled_by_its_content_has_what_it_has_without_us(out):
    class Own(nn.Module):
        def forward(self, x):
            return x * self.weight

    model = Own()
    model.weight = nn.Parameter(torch.ones(1))
    hook = smd.Hook(out, save_config=EVERY)
    hook.register_module(model)
    model(torch.ones(1))
    found = pickle.loads(pickle.dumps(vars(Own).get("_compiled_call_impl")))
    assert found is None
    hook.close()


def test_hooks_of_the_program_have_the_numbers_that_they_have_without_us(out):
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = RemovableHandle.next_id
    hook = smd.Hook(out, save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_module(model)
    for _ in range(4):
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    assert model.register_forward_hook(lambda *_: None).id == first
    hook.close()


def test_a_registered_loss_has_no_hooks(out):
    class Dice(nn.Module):
        def forward(self, a, b):
            assert not self._forward_hooks
            return (a * b).sum()

    model, dice, other = nn.Linear(3, 2), Dice(), Dice()
    hook = smd.Hook(out, include_regex="Dice_output", save_config=EVERY)
    hook.register_module(model)
    hook.register_loss(dice)
    for _ in range(2):
        output = model(torch.ones(2, 3))
        other(output, output)
        dice(output, output).backward()
    hook.close()
    assert "__call__" not in vars(Dice)
    assert smd.create_trial(out).tensor_names() == ["Dice_output_0"]


RELOADED = """
import copy, torch
from torch import nn
model, criterion = nn.Sequential(nn.Linear(3, 2)), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.ones(4, 3), torch.zeros(4, dtype=torch.long)
for _ in range(2):
    criterion(model(x), y).backward()
    optimizer.step()
with torch.no_grad():
    criterion(model.eval()(x), y)
    model = copy.deepcopy(model)
    criterion(model(x), y)
"""


def test_what_a_copy_computes_that_takes_the_models_place_is_no_part_of_the_last_evaluation(runner):
    script = runner.write(RELOADED)
    assert runner.by_variable(script, config={"HookParameters": {"save_interval": 1}}).returncode == 0
    trial = smd.create_trial(str(runner.folder / "run"))
    assert trial.steps(mode=ModeKeys.EVAL) == [0]
    assert trial.tensor_names(collection="losses") == ["CrossEntropyLoss_output_0"]
