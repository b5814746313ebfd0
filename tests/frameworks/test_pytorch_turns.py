"""Loops whose models and optimizers do not simply take turns: nothing of an iteration is lost, or cut in two."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from harness import nothing_compiled as others
from harness.compare import assert_untouched, run_both
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.pytorch.model.given_to_optimizer import given_to_optimizer

EVERY = smd.SaveConfig(save_interval=1)
TRAIN, EVAL = smd.modes.TRAIN, smd.modes.EVAL


@pytest.fixture(autouse=True)
def nothing_compiled():
    """Have the agent take this process, in which other tests run too, for one that has compiled nothing."""
    with others.nothing_compiled():
        yield


def hook_for(out, *models):
    hook = smd.Hook(out, save_config=EVERY, include_collections=["losses", "gradients"])
    for model in models:
        hook.register_module(model)
    hook.follow_calls()
    return hook


def losses(hook, mode):
    """Return the losses of each step of a mode, in the order of their names."""
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    names = {step: trial.tensor_names(step=step, mode=mode, collection="losses") for step in trial.steps(mode=mode)}
    return [
        [float(trial.tensor(name).value(step, mode=mode)) for name in sorted(found)] for step, found in names.items()
    ]


class SharpnessAware(torch.optim.Optimizer):
    """Moves the weights by hand first, and has another optimizer update them from where they were."""

    def __init__(self, parameters, base):
        super().__init__(parameters, {})
        self.base = base(self.param_groups, lr=0.05)
        self.moves = []

    @torch.no_grad()
    def move(self):
        self.moves = [(p, 0.01 * p.grad) for group in self.param_groups for p in group["params"]]
        for parameter, move in self.moves:
            parameter.add_(move)
        self.zero_grad()

    @torch.no_grad()
    def update(self):
        for parameter, move in self.moves:
            parameter.sub_(move)
        self.base.step()
        self.zero_grad()


def test_both_passes_of_an_iteration_are_one_step_where_the_weights_are_moved_by_hand_first(out):
    model = nn.Linear(4, 1)
    given_to_optimizer(model.parameters())
    optimizer = SharpnessAware(model.parameters(), torch.optim.SGD)
    hook = hook_for(out, model)
    printed = []
    for _ in range(4):
        x = torch.randn(8, 4)
        first = model(x).square().mean()
        first.backward()
        optimizer.move()
        second = model(x).square().mean()
        second.backward()
        optimizer.update()
        printed.append([first.item(), second.item()])
    assert losses(hook, TRAIN) == [pytest.approx(step) for step in printed]


def test_updates_by_hand_beside_an_optimizer_that_never_updates_end_steps(out):
    model = nn.Linear(4, 1)
    given_to_optimizer(model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    printed = []
    for _ in range(5):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
        printed.append(loss.item())
    # The first change of the weights may come before an update.
    expected = [printed[:2], *([loss] for loss in printed[2:])]
    assert losses(hook, TRAIN) == [pytest.approx(step) for step in expected]


class Actor(nn.Linear):
    pass


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x, action):
        return self.fc(torch.cat([x, action], 1))


def test_no_loss_is_lost_where_targets_are_called_while_a_step_waits_for_its_update(out):
    actor, critic, late_actor, late_critic = Actor(3, 1), Critic(), Actor(3, 1), Critic()
    of_critic = torch.optim.Adam(critic.parameters(), 1e-2)
    of_actor = torch.optim.Adam(actor.parameters(), 1e-2)
    hook = hook_for(out, critic, actor)
    printed = []

    def learn(loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        printed.append(loss.item())

    for number in range(12):
        x = torch.randn(8, 3)
        with torch.no_grad():
            actor(x[:1])
            wanted = x.sum(1, keepdim=True) + 0.9 * late_critic(x, late_actor(x))
        learn((critic(x, torch.randn(8, 1)) - wanted).square().mean(), of_critic)
        for _ in range(2 * (number % 2)):
            learn(-critic(x, actor(x)).mean(), of_actor)
    found = [loss for step in losses(hook, TRAIN) for loss in step]
    assert sorted(found) == pytest.approx(sorted(printed))


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        self.seen = self.features(x).relu()
        return self.head(self.seen)


def test_layers_of_the_class_of_another_trained_model_take_no_loss_out_of_an_evaluation(out):
    student, regressor = Student(), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*student.parameters(), *regressor.parameters()], lr=0.1)
    hook = hook_for(out, student, regressor)
    printed = []
    for _ in range(3):
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        loss = nn.functional.cross_entropy(student(x), y) + regressor(student.seen).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        student.eval()
        with torch.no_grad():
            printed.append([nn.functional.cross_entropy(student(x), y).item()])
        student.train()
    assert losses(hook, EVAL) == [pytest.approx(step) for step in printed]


IN_TURNS = """
import copy, torch
torch.manual_seed(0)
def made(*nets):
    return [(net, torch.optim.Adam(net.parameters(), 1e-2)) for net in nets]
def learn(net, optimizer):
    loss = net(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return repr(loss.item())
"""
TURNS = {
    "sharing_an_encoder": """
encoder = torch.nn.Linear(4, 3)
nets = made(*(torch.nn.Sequential(encoder, torch.nn.Linear(3, 2)) for _ in range(3)))
for _ in range(5): print(*[learn(*one) for one in nets])
""",
    "copies": """
net = torch.nn.Linear(4, 2)
nets = made(*(copy.deepcopy(net) for _ in range(3)))
for _ in range(5): print(*[learn(*one) for one in nets])
""",
    "one_after_the_other": """
for one in made(*(torch.nn.Linear(4, 2) for _ in range(3))):
    for _ in range(3): print(learn(*one))
""",
    "each_made_when_it_is_its_turn": """
for _ in range(3):
    for one in made(torch.nn.Linear(4, 2)): print(learn(*one))
""",
}


@pytest.mark.parametrize("case", TURNS)
def test_models_that_are_called_after_the_first_update_take_their_turn_in_the_first_step(runner, case):
    config = {"HookParameters": {"save_interval": 1}}
    both = run_both(runner, runner.write(IN_TURNS + TURNS[case]), config=config)
    assert_untouched(both)
    trial = both.trial
    printed = [[*map(float, line.split())] for line in both.plain.stdout.splitlines()]
    assert trial.steps(mode=TRAIN) == [*range(len(printed))]
    for step, losses in enumerate(printed):
        names = [f"Loss_output_{number}" for number in range(len(losses))]
        assert trial.tensor_names(step=step, mode=TRAIN, collection="losses") == names
        assert [trial.tensor(name).value(step, mode=TRAIN) for name in names] == losses


CACHED = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Dropout(0.1))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
def loss_of(outputs): return torch.nn.functional.cross_entropy(outputs @ outputs.t(), torch.arange(len(outputs)))
for _ in range(4):
    parts = torch.randn(8, 6).chunk(2)
    with torch.no_grad(): outputs = torch.cat([net(part) for part in parts])
    loss = loss_of(outputs.requires_grad_())
    loss.backward()
    optimizer.zero_grad()
    rest = [(net(part) * gradient).sum() for part, gradient in zip(parts, outputs.grad.chunk(2))]
    for one in rest: one.backward()
    optimizer.step()
    net.eval()
    with torch.no_grad(): print(*[repr(one.item()) for one in (loss, *rest, loss_of(net(parts[0])))])
    net.train()
"""


def test_a_first_pass_without_gradients_belongs_to_the_training_step(runner):
    config = {"HookParameters": {"save_interval": 1}}
    both = run_both(runner, runner.write(CACHED), config=config)
    assert_untouched(both)
    printed = [[*map(float, line.split())] for line in both.plain.stdout.splitlines()]
    for mode, place in ((TRAIN, slice(0, 3)), (EVAL, slice(3, 4))):
        assert both.trial.steps(mode=mode) == [0, 1, 2, 3]
        for step, losses in enumerate(printed):
            names = both.trial.tensor_names(step=step, mode=mode, collection="losses")
            found = [both.trial.tensor(name).value(step, mode=mode) for name in sorted(names)]
            assert found == losses[place], (mode, step)
