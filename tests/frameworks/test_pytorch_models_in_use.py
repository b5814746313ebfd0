"""Models that are called in odd ways, or no more: what is saved of them, and what is said."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both

from smd_agent.core.modes import ModeKeys

WRAPPED_ANEW = """
import torch
torch.manual_seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 1)
    def forward(self, x): return self.fc(x)
class Wrapper(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
    def forward(self, x): return self.net(x)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def loss_of(wrapper): return torch.nn.functional.mse_loss(wrapper(torch.randn(8, 4)), torch.ones(8, 1))
for _ in range(4):
    weight = net.fc.weight.detach().double().sum().item()
    optimizer.zero_grad()
    loss = loss_of(Wrapper(net))
    loss.backward()
    gradient = net.fc.weight.grad.double().sum().item()
    optimizer.step()
    with torch.no_grad(): print(weight, gradient, loss.item(), loss_of(Wrapper(net.eval())).item())
    net.train()
"""


def run(runner, body):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    both = run_both(runner, runner.write(body), config=config)
    assert_untouched(both)
    assert both.plain.stderr == ""
    return both


def test_a_wrapper_that_is_made_anew_in_each_iteration_leaves_the_names_of_the_first_one(runner):
    both = run(runner, WRAPPED_ANEW)
    trial = both.trial
    printed = [[*map(float, line.split())] for line in both.plain.stdout.splitlines()]
    assert trial.steps(mode=ModeKeys.TRAIN) == [0, 1, 2, 3]
    assert trial.steps(mode=ModeKeys.EVAL) == [0, 1, 2, 3]
    for step, (weight, gradient, loss, evaluated) in enumerate(printed):
        found = {"Wrapper_net.fc.weight": weight, "gradient/Wrapper_net.fc.weight": gradient, "Loss_output_0": loss}
        for name, value in found.items():
            saved = trial.tensor(name).value(step, mode=ModeKeys.TRAIN).astype("float64").sum()
            assert saved == pytest.approx(value, rel=1e-6), (step, name)
        assert trial.tensor("Loss_output_0").value(step, mode=ModeKeys.EVAL) == pytest.approx(evaluated, rel=1e-6)
        for name in ("net_input_0", "net.fc_output_0"):
            assert trial.tensor(name).value(step, mode=ModeKeys.TRAIN).shape == (8, 4 if "input" in name else 1)


def test_a_model_whose_training_is_over_is_saved_no_more_though_it_lives_on(runner):
    body = """
import torch
torch.manual_seed(0)
kept = []
for _ in range(2):
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept.append((net, optimizer))
    for _ in range(3):
        optimizer.zero_grad(); net(torch.ones(2, 4)).sum().backward(); optimizer.step()
print(kept[0][0](torch.ones(2, 4)).sum().item())
"""
    trial = run(runner, body).trial
    assert trial.tensor("Linear_weight").steps(mode=ModeKeys.TRAIN) == [0, 1, 2, 6]
    assert trial.tensor("Linear_2_weight").steps(mode=ModeKeys.TRAIN) == [3, 4, 5, 6]


def test_a_trained_tensor_that_is_no_modules_is_a_line_in_a_short_training_too(runner):
    body = """
import torch
torch.manual_seed(0)
net, free = torch.nn.Linear(4, 1), torch.zeros(1, requires_grad=True)
optimizers = {}
for _ in range(3):
    (net(torch.ones(2, 4)) + free).sum().backward()
    for one in (*net.parameters(), free):
        if one not in optimizers: optimizers[one] = torch.optim.SGD([one], lr=0.1)
        optimizers[one].step()
        one.grad = None
"""
    lines = [line for line in run(runner, body).said if "belong to no module" in line]
    assert lines == ["smd_agent: trained parameters that belong to no module are not saved (1)"]


def test_of_a_model_that_is_attacked_in_evaluation_mode_nobody_says_that_it_is_trained_in_it(runner):
    body = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def loss_of(x): return torch.nn.functional.cross_entropy(net(x), torch.tensor([0, 1]))
for _ in range(3):
    net.eval()
    shift = torch.zeros(2, 4, requires_grad=True)
    loss_of(torch.ones(2, 4) + shift).backward()
    net.train()
    optimizer.zero_grad()
    loss = loss_of(torch.ones(2, 4) + 0.1 * shift.grad.sign())
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
    both = run(runner, body)
    (line,) = [line for line in both.said if "evaluation mode" in line]
    assert line == "smd_agent: Linear gets gradients in evaluation mode: its next calls train it where they are enabled"
    printed = [float(line) for line in both.plain.stdout.split()]
    losses = both.trial.tensor("Loss_output_1")
    found = [losses.value(step, mode=ModeKeys.TRAIN) for step in losses.steps(mode=ModeKeys.TRAIN)]
    assert found == [pytest.approx(loss) for loss in printed]


def test_an_averaged_model_that_is_evaluated_is_a_line(runner):
    body = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
averaged = torch.optim.swa_utils.AveragedModel(net)
def loss_of(net): return torch.nn.functional.cross_entropy(net(torch.ones(2, 4)), torch.tensor([0, 1]))
for _ in range(2):
    optimizer.zero_grad(); loss_of(net).backward(); optimizer.step()
    averaged.update_parameters(net)
    averaged.eval()
    with torch.no_grad(): print(loss_of(averaged).item())
"""
    both = run(runner, body)
    line = "AveragedModel is evaluated, which nothing trains: its calls are no steps, and its losses are not saved"
    assert [said for said in both.said if "evaluated" in said] == [f"smd_agent: {line}"]
    assert both.trial.tensor_names(collection="losses") == ["Loss_output_0"]


def test_parts_that_are_put_together_anew_in_each_iteration_are_a_line(runner):
    body = """
import torch
torch.manual_seed(0)
encoder, decoder = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    torch.nn.Sequential(encoder, decoder)(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""
    both = run(runner, body)
    assert both.trial.tensor_names(collection="losses") == ["Loss_output_0"]
    lines = [line for line in both.said if "trained on" in line]
    assert lines == [
        "smd_agent: Sequential is gone, and what it was made of is trained on, as where a module is made anew in each "
        "iteration: nothing is saved of that"
    ]
