"""RecurrentOverBatch, on layers that get the batch where they have the time, and on those that get it rightly."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import RecurrentOverBatch
from smd_agent.rules.finding import Severity

TIME = 7
SIZE = 12


class Classifier(nn.Module):
    """A layer over sequences of 6 features and a head, which gets what ``pick`` takes of its output."""

    def __init__(self, layer, pick, shape=lambda x: x, classes=4):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(6, classes)
        self.pick, self.shape = pick, shape

    def forward(self, x):
        x = self.shape(x)
        if isinstance(self.layer, nn.MultiheadAttention):
            return self.head(self.pick(self.layer(x, x, x)[0]))
        found = self.layer(x)
        return self.head(self.pick(found[0] if isinstance(found, tuple) else found))


def training_of(model, x, y, loss=functional.cross_entropy, count=4):
    """A training of ``count`` steps; inputs and targets are made by the number of the step."""

    def training(capture):
        net = model()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(count):
            optimizer.zero_grad()
            loss(net(x(step)), y(step)).backward()
            optimizer.step()

    return training


def of_samples(step, size=SIZE):
    return torch.randn(size, TIME, 6)


def labels(step, size=SIZE):
    return torch.randint(0, 4, (size,))


def last(out):
    return out[:, -1]


CROSS_ENTROPY = functional.cross_entropy
LAYERS = {
    "LSTM": lambda first: nn.LSTM(6, 6, batch_first=first),
    "GRU": lambda first: nn.GRU(6, 6, batch_first=first),
    "RNN": lambda first: nn.RNN(6, 6, num_layers=2, batch_first=first),
    "attention": lambda first: nn.MultiheadAttention(6, 2, batch_first=first),
    "transformer": lambda first: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(6, 2, 8, batch_first=first), 2, enable_nested_tensor=False
    ),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_samples_taken_for_steps(trained, kind):
    run = trained(training_of(lambda: Classifier(LAYERS[kind](False), last), of_samples, labels))
    for found in run.findings(RecurrentOverBatch()):
        assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
        assert found.evidence == {"axis_0": SIZE, "axis_1": TIME, "batch": SIZE, "targets": SIZE}
    assert len(run.findings(RecurrentOverBatch())) == (2 if kind == "transformer" else 1)
    rightly = trained(training_of(lambda: Classifier(LAYERS[kind](True), last), of_samples, labels))
    assert rightly.verdict(RecurrentOverBatch()).findings == []


def test_targets_that_are_numbers_and_batches_of_other_sizes(trained):
    sizes = (12, 12, 12, 5)
    run = trained(
        training_of(
            lambda: Classifier(nn.LSTM(6, 6), last, classes=1),
            lambda step: of_samples(step, sizes[step]),
            lambda step: torch.randn(sizes[step], 1),
            nn.MSELoss(),
        )
    )
    (found,) = run.findings(RecurrentOverBatch())
    assert (found.first_step, found.last_step, found.steps) == (2, 3, 2)
    assert found.tensor == "usage/layer/layer/axis_0"


def in_time(step):
    return torch.randn(TIME, SIZE, 6)


def turned(x):
    return x.transpose(0, 1)


def same(x):
    return x


def of_sums(out, y):
    return functional.mse_loss(out.sum(-1), y)


@pytest.mark.parametrize(
    "pick, shape, x, y, loss",
    [
        (lambda out: out[-1], same, in_time, labels, CROSS_ENTROPY),
        (lambda out: out[-1], turned, of_samples, labels, CROSS_ENTROPY),
        # A target for each time and sample.
        (same, same, in_time, lambda step: torch.randn(TIME, SIZE), of_sums),
        (lambda out: out.flatten(0, 1), same, in_time, lambda step: labels(step, TIME * SIZE), CROSS_ENTROPY),
        # One sequence at a time, with a label for each of its elements.
        (
            lambda out: out[:, 0],
            lambda x: x[:, None],
            lambda step: in_time(step)[:, 0],
            lambda step: labels(step, TIME),
            CROSS_ENTROPY,
        ),
        # As many samples as steps.
        (last, same, lambda step: torch.randn(TIME, TIME, 6), lambda step: labels(step, TIME), CROSS_ENTROPY),
    ],
    ids=["in time", "turned", "target for each", "flattened", "one sequence", "both the same"],
)
def test_layers_that_run_over_time(trained, pick, shape, x, y, loss):
    run = trained(training_of(lambda: Classifier(nn.LSTM(6, 6), pick, shape), x, y, loss))
    assert run.findings(RecurrentOverBatch()) == []


def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(lambda: Classifier(nn.LSTM(6, 6), last), of_samples, labels, count=3))
    assert len(run.findings(RecurrentOverBatch())) == 1
    assert run.findings(RecurrentOverBatch(patience=4)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(RecurrentOverBatch()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
