"""AccumulationWeights, on language models whose gradients are accumulated over batches with different padding."""

from __future__ import annotations

import pytest
import torch
from harness.padded_rows import TOKENS, Net, loss_of
from torch import nn
from torch.nn import functional

from smd_agent.rules import AccumulationWeights
from smd_agent.rules.finding import Severity

LENGTH, SIZE = 16, 4
IGNORED = -100


def batch(known):
    x = torch.randint(0, TOKENS, (SIZE, LENGTH + 1))
    y = x[:, 1:].clone()
    y[:, known:] = IGNORED
    return x[:, :-1], y


def mean_of(net, x, y, **settings):
    return loss_of(net(x), y, **settings)


def training_of(losses, known, count=4):
    """A training; ``losses`` gives those of the batches of an update, each of which has a pass of its own."""

    def training(capture):
        net = Net()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            for loss in losses(net, [batch(length) for length in known]):
                loss.backward()
            optimizer.step()

    return training


def means(net, batches):
    """Each divided by their number, as most programs do."""
    return (mean_of(net, *one) / len(batches) for one in batches)


def divided_twice(net, batches):
    return (mean_of(net, *one) / len(batches) ** 2 for one in batches)


def sums(net, batches):
    count = sum((y != IGNORED).sum() for _, y in batches)
    return (mean_of(net, *one, reduction="sum") / count for one in batches)


def weighed(net, batches):
    count = sum((y != IGNORED).sum() for _, y in batches)
    return (mean_of(net, x, y) * (y != IGNORED).sum() / count for x, y in batches)


def in_one_pass(net, batches):
    yield sum(means(net, batches))


def test_means_over_different_numbers(trained):
    (found,) = trained(training_of(means, (15, 3))).findings(AccumulationWeights())
    assert found.tensor == "usage/loss/cross_entropy_loss_0/factor"
    assert found.evidence == {"fewest": 3 * SIZE, "most": 15 * SIZE, "passes": 2}
    assert found.severity is Severity.WARNING


def test_means_that_are_divided_twice(trained):
    (found,) = trained(training_of(divided_twice, (9, 9, 9, 9))).findings(AccumulationWeights())
    assert found.evidence == {"factor": 1 / 16, "passes": 4}
    assert found.severity is Severity.WARNING
    assert "twice" in found.cause


LOSSES = {
    "squares": nn.MSELoss(),
    "sizes": functional.l1_loss,
    "smooth": nn.SmoothL1Loss(),
    "huber": functional.huber_loss,
    "logits": lambda out, y: functional.binary_cross_entropy_with_logits(out, (y > 0).float()),
    "yes and no": lambda out, y: functional.binary_cross_entropy(out.sigmoid(), (y > 0).float()),
}


def numbers_trained(loss_of, passes=4, count=4):
    """A training on numbers; ``loss_of`` gives the loss of a batch from what the model says and the target."""

    def training(capture):
        net = nn.Linear(6, 1)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            for _ in range(passes):
                loss_of(net(torch.randn(8, 6)), torch.randn(8, 1)).backward()
            optimizer.step()
            optimizer.zero_grad()

    return training


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_numbers_that_is_divided_twice(trained, name):
    run = trained(numbers_trained(lambda out, y: LOSSES[name](out, y) / 4 / 4))
    (found,) = run.findings(AccumulationWeights())
    assert found.evidence == {"factor": 1 / 16, "passes": 4}
    assert (found.severity, "twice" in found.cause) == (Severity.WARNING, True)


def as_a_trainer(out, y):
    """As a function of a library that divides too."""
    loss = functional.mse_loss(out, y) * 0.125
    return (loss.float() * 0.125).squeeze()


def test_as_many_passes_as_are_not_all_looked_at(trained):
    (found,) = trained(numbers_trained(as_a_trainer, passes=8)).findings(AccumulationWeights())
    assert found.evidence == {"factor": 1 / 64, "passes": 8}


WEIGHED = {
    "once": lambda out, y: functional.mse_loss(out, y) / 4,
    "not": lambda out, y: functional.mse_loss(out, y),
    "a sum": lambda out, y: functional.mse_loss(out, y, reduction="sum") / 16,
    "one of several": lambda out, y: (0.25 * functional.mse_loss(out, y) + 0.75 * functional.l1_loss(out, y)) / 4,
    "beside one of the program": lambda out, y: (0.25 * functional.mse_loss(out, y) + 0.75 * out.pow(2).mean()) / 4,
    "of labels, beside others": lambda out, y: (
        (0.25 * functional.cross_entropy(torch.cat((out, -out), 1), (y[:, 0] > 0).long()) + out.abs().mean()) / 4
    ),
}


@pytest.mark.parametrize("name", WEIGHED)
def test_losses_of_numbers_that_are_divided_once(trained, name):
    assert trained(numbers_trained(WEIGHED[name])).verdict(AccumulationWeights()).findings == []


def test_more_passes_than_losses_that_are_looked_at(trained):
    (found,) = trained(training_of(means, (15, 14, 12, 10, 15, 15))).findings(AccumulationWeights())
    assert found.evidence == {"fewest": 10 * SIZE, "most": 15 * SIZE, "passes": 6}
    assert found.severity is Severity.NOTE


def test_the_gradient_that_a_loss_is_given(trained):
    run = trained(training_of(weighed, (15, 3), count=1))
    factors = [run.trial().tensor(f"usage/loss/cross_entropy_loss_{i}/factor").value(0) for i in (0, 1)]
    assert factors == pytest.approx([15 / 18, 3 / 18])


def test_the_first_gradient_of_a_loss_counts(trained):
    def training(capture):
        net = Net()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        loss = mean_of(net, *batch(9))
        (loss / 2).backward(retain_graph=True)
        loss.backward()
        optimizer.step()

    assert trained(training).trial().tensor("usage/loss/cross_entropy_loss_0/factor").value(0) == 0.5


@pytest.mark.parametrize("losses", [sums, weighed, in_one_pass])
def test_targets_that_weigh_the_same(trained, losses):
    # A sum is none of what it looks at.
    assert trained(training_of(losses, (15, 3))).verdict(AccumulationWeights()).findings == []


def test_numbers_that_are_the_same(trained):
    assert trained(training_of(means, (9, 9))).findings(AccumulationWeights()) == []


def test_batches_without_labels_that_are_ignored(trained):
    """As those of an epoch are, of which the last one is smaller."""

    def losses(net, batches):
        return (mean_of(net, x[: i + 1], x[: i + 1]) / 2 for i, (x, _) in enumerate(batches))

    assert trained(training_of(losses, (9, 9))).findings(AccumulationWeights()) == []


def test_one_pass_for_each_update(trained):
    def training(capture):
        net = Net()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(6):
            optimizer.zero_grad()
            mean_of(net, *batch(3 + 12 * (step % 2))).backward()
            optimizer.step()

    assert trained(training).findings(AccumulationWeights()) == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(means, (15, 3)))
    assert run.findings(AccumulationWeights(ratio=5.1)) == []
    assert run.findings(AccumulationWeights(patience=5)) == []
    (found,) = run.findings(AccumulationWeights(much=5.1))
    assert found.severity is Severity.NOTE


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(AccumulationWeights()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
