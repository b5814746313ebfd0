"""What a step is, and what several models in a script have to do with each other."""

from __future__ import annotations

import gc

import pytest

pytest.importorskip("torch")

import torch
from harness import nothing_compiled as others
from torch import nn

import smd_agent.pytorch as smd

EVERY = smd.SaveConfig(save_interval=1)


def small():
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def value(trial, name, step=0, mode=smd.modes.GLOBAL):
    return trial.tensor(name).value(step, mode=mode)


def test_a_step_is_a_forward_and_evaluation_counts_for_itself(out):
    model = small()
    hook = smd.Hook(out, save_config=EVERY)
    hook.register_module(model)
    hook.follow_calls()
    model(torch.randn(2, 5)).sum().backward()
    model(torch.randn(2, 5)).sum().backward()
    model.eval()
    with torch.no_grad():
        nn.MSELoss()(model(torch.randn(2, 5)), torch.zeros(2, 3))
    model.train()
    with torch.no_grad():
        model(torch.randn(2, 5))
    model(torch.randn(2, 5)).sum().backward()
    trial = trial_of(hook)
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2]
    assert trial.steps(mode=smd.modes.EVAL) == [0]
    assert trial.mode_modestep(4) == (smd.modes.TRAIN, 2)
    assert value(trial, "MSELoss_output_0", 0, smd.modes.EVAL).shape == ()


class Recursive(nn.Linear):
    def forward(self, x, depth=2):
        return super().forward(x) if depth == 0 else self(x, depth=depth - 1)


@pytest.mark.parametrize("interval", [1, 2])
@pytest.mark.parametrize("kind", ["wrapped", "recursive"])
def test_only_the_outermost_call_is_a_step_whether_it_is_saved_or_not(out, kind, interval):
    model = nn.DataParallel(small()) if kind == "wrapped" else Recursive(5, 3)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=interval))
    hook.register_module(model)
    for _ in range(4):
        model(torch.randn(2, 5)).sum().backward()
    assert hook.step == 3
    assert trial_of(hook).steps() == list(range(0, 4, interval))


def test_a_training_step_is_never_a_part_of_an_evaluation(out):
    first, second = nn.Linear(5, 4), nn.Linear(5, 3)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights", "gradients"])
    hook.register_module(first)
    hook.register_module(second)
    steps = []
    for _ in range(3):
        for model in (first, second):
            with torch.no_grad():
                first(torch.randn(2, 5))
            optimizer.zero_grad()
            model(torch.randn(2, 5)).sum().backward()
            steps.append(hook.step)
            optimizer.step()
    assert steps == list(range(1, 12, 2))
    trial = trial_of(hook)
    assert trial.tensor("gradient/Linear_2_weight").steps() == [3, 7, 11]


class Task(nn.Module):
    """Holds the net and its loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x, y):
        return self.criterion(self.net(x), y)


@pytest.fixture
def nothing_compiled():
    """Have the agent take this process, in which other tests run too, for one that has compiled nothing."""
    with others.nothing_compiled():
        yield


def rows(count=4):
    return torch.randn(count, 5), torch.randint(3, (count,))


@pytest.mark.parametrize("interval", [1, 2, 4])
def test_the_net_inside_of_a_task_is_evaluated_in_steps_of_its_own(out, interval):
    net, criterion = small(), nn.CrossEntropyLoss()
    task = Task(nn.Sequential(net))
    optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=interval), save_all=True)
    hook.register_module(task)
    hook.follow_calls()
    losses = []
    for _ in range(2):
        for _ in range(3):
            optimizer.zero_grad()
            task(*rows()).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            for _ in range(2):
                x, y = rows()
                losses.append(criterion(net(x), y).numpy())
        net.train()
    trial = trial_of(hook)
    assert trial.steps(mode=smd.modes.TRAIN) == [*range(0, 6, interval)]
    assert trial.steps(mode=smd.modes.EVAL) == [*range(0, 4, interval)]
    for step in range(0, 6, interval):
        names = trial.tensor_names(step=step, mode=smd.modes.TRAIN)
        assert [name for name in names if name.endswith("output_1")] == []
    for step in range(0, 4, interval):
        saved = value(trial, "CrossEntropyLoss_output_0", step, smd.modes.EVAL)
        assert saved == losses[step]


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("made_by", ["a part", "another model"])
def test_what_is_computed_after_the_update_by_a_model_without_steps_is_no_loss_of_the_step(out, made_by):
    model, criterion = small(), nn.CrossEntropyLoss()
    other = nn.Sequential(nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=EVERY, include_collections=["losses"])
    hook.register_module(model)
    hook.follow_calls()
    losses = []
    for _ in range(3):
        x, y = rows()
        optimizer.zero_grad()
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        # Of the step's own outputs, after its update.
        losses.append((loss.item(), criterion(output.detach(), 1 - y.clamp(max=1)).item()))
        with torch.no_grad():
            evaluated = model[2](torch.randn(4, 4)) if made_by == "a part" else other(x)
            criterion(evaluated, y)
            nn.functional.cross_entropy(evaluated, y)
    trial = trial_of(hook)
    for step in range(3):
        names = trial.tensor_names(step=step, collection="losses")
        assert [value(trial, name, step, smd.modes.TRAIN) for name in names] == pytest.approx(losses[step])


@pytest.mark.usefixtures("nothing_compiled")
def test_losses_of_a_model_loaded_anew_are_none_of_the_last_evaluation(out):
    class Net(nn.Linear):
        pass

    model, criterion = Net(5, 3), nn.CrossEntropyLoss()
    hook = smd.Hook(out, save_config=EVERY, include_collections=["losses"])
    hook.register_module(model)
    hook.follow_calls()
    best, frozen = Net(5, 3), nn.Linear(3, 3)
    with torch.no_grad():
        x, y = rows()
        expected = [criterion(model(x), y).item(), criterion(frozen(model(x)), y).item()]
        expected.append(nn.functional.cross_entropy(frozen(torch.ones(4, 3)), y).item())
        for _ in range(2):
            criterion(best(x), y)
            nn.functional.cross_entropy(best(x), y)
    trial = trial_of(hook)
    assert trial.steps(mode=smd.modes.EVAL) == [0, 1]
    names = ["CrossEntropyLoss_output_0", "cross_entropy_loss_output_0"]
    assert trial.tensor_names(collection="losses") == names
    saved = [value(trial, name, step, smd.modes.EVAL) for name, step in ((names[0], 0), (names[0], 1), (names[1], 1))]
    assert saved == pytest.approx(expected)


def adversaries(hook, iterations):
    judge, generator = nn.Linear(5, 1), nn.Linear(2, 5)
    models = (judge, generator)
    for model in models:
        hook.register_module(model)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    # Each keeps its optimizer alive until Python's garbage collector runs.
    schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 2) for optimizer in optimizers]
    for _ in range(iterations):
        for optimizer, turns in zip(optimizers, (3, 1), strict=True):
            for _ in range(turns):
                optimizer.zero_grad()
                judge(generator(torch.randn(4, 2))).mean().backward()
                optimizer.step()
        for scheduler in schedulers:
            scheduler.step()


def test_a_training_does_not_wait_for_the_optimizers_of_one_that_is_over(out):
    hook = smd.Hook(out, save_config=EVERY)
    hook.follow_calls()
    # The first optimizer of a process has PyTorch import its compiler, which leaves frames of its callers in a cycle.
    torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    gc.collect()
    gc.disable()
    try:
        adversaries(hook, 3)
        assert hook.step == 2
        model = nn.Linear(5, 3)
        hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(4, 5)).mean().backward()
            optimizer.step()
    finally:
        gc.enable()
    assert hook.step == 8


def test_models_that_step_together_share_a_step(out):
    first, second = nn.Linear(5, 4), nn.Sequential(nn.Linear(4, 3))
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights", "gradients"])
    hook.register_module(first)
    hook.register_module(second)
    for _ in range(2):
        second(first(torch.randn(2, 5))).sum().backward()
    trial = trial_of(hook)
    assert trial.steps() == [0, 1]
    assert trial.tensor_names(step=1, regex="weight") == [
        "Linear_weight",
        "Sequential_0.weight",
        "gradient/Linear_weight",
        "gradient/Sequential_0.weight",
    ]


def test_two_models_of_one_class_keep_their_names_apart(out):
    first, second = nn.Linear(5, 5), nn.Linear(5, 3)
    hook = smd.Hook(out, include_collections=["weights"])
    hook.register_module(first)
    hook.register_module(second)
    second(first(torch.randn(2, 5)))
    trial = trial_of(hook)
    assert value(trial, "Linear_weight").shape == (5, 5)
    assert value(trial, "Linear_2_weight").shape == (3, 5)


def test_a_model_called_inside_another_belongs_to_its_step(out):
    inner = nn.Sequential(nn.Linear(4, 3))

    class Outer(nn.Linear):
        def forward(self, x):
            return inner(super().forward(x)) + inner(super().forward(x))

    outer = Outer(5, 4)
    hook = smd.Hook(out, save_all=True, save_config=smd.SaveConfig(save_interval=2))
    hook.register_module(outer)
    hook.register_module(inner)
    for _ in range(4):
        outer(torch.randn(2, 5)).sum().backward()
    trial = trial_of(hook)
    assert trial.steps() == [0, 2]
    assert {"Outer_output_0", "Sequential_output_0", "Sequential_output_1"} <= set(trial.tensor_names(step=2))


def test_the_recomputation_of_a_checkpoint_is_neither_a_step_nor_saved_again(out):
    from torch.utils.checkpoint import checkpoint

    model, criterion = small(), nn.MSELoss()
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    for _ in range(3):
        checkpoint(lambda x: criterion(model(x), torch.zeros(2, 3)), torch.randn(2, 5), use_reentrant=False).backward()
    assert hook.step == 2
    names = trial_of(hook).tensor_names(step=1, regex="MSELoss|^0_")
    assert names == ["0_input_0", "0_output_0", "MSELoss_input_0", "MSELoss_input_1", "MSELoss_output_0"]
