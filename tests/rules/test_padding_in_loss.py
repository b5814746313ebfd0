"""PaddingInLoss, on language models whose loss counts the padding of rows, and on others."""

from __future__ import annotations

import pytest
import torch
from harness.padded_rows import END, PAD, SIZE, TOKENS, loss_of, rows, training_of

from smd_agent.rules import PaddingInLoss
from smd_agent.rules.finding import Severity


def counted(net, x):
    return loss_of(net(x)[:, :-1], x[:, 1:])


def counted_from_the_data(net, x):
    return loss_of(net(x[:, :-1]), x[:, 1:])


def ignored(net, x):
    return loss_of(net(x)[:, :-1], x[:, 1:], ignore_index=PAD)


def classes(net, x, **told):
    """As of a model that gives each token a class."""
    return loss_of(net(x), x.masked_fill(x == PAD, 3) % 4, **told)


def test_classes_of_tokens(trained):
    (found,) = trained(training_of(classes)).findings(PaddingInLoss())
    assert found.cause.startswith("The loss counts the labels that stand at the padding")


def by_mask(net, x):
    return (loss_of(net(x)[:, :-1], x[:, 1:], reduction="none") * (x[:, 1:] != PAD).reshape(-1)).mean()


def by_weight(net, x):
    weight = torch.ones(TOKENS)
    weight[PAD] = 0
    return loss_of(net(x)[:, :-1], x[:, 1:], weight=weight)


def classes_that_are_ignored(net, x):
    return loss_of(net(x), (x % 4).masked_fill(x == PAD, -100))


@pytest.mark.parametrize("step", [by_mask, by_weight, classes_that_are_ignored])
def test_padding_that_is_left_out_in_another_way(trained, step):
    assert trained(training_of(step)).verdict(PaddingInLoss()).findings == []


@pytest.mark.parametrize("step", [counted, counted_from_the_data])
@pytest.mark.parametrize("end", [END, PAD])
def test_padding_that_counts(trained, step, end):
    (found,) = trained(training_of(step, end=end)).findings(PaddingInLoss())
    assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
    assert found.tensor == "usage/target/cross_entropy_loss_0/padded_1"
    assert found.evidence["padded"] == SIZE - 1
    assert found.evidence["padding"] >= 2 * SIZE


def test_rows_along_the_first_axis(trained):
    def step(net, x):
        return loss_of(net(x.t())[:-1], x.t()[1:])

    (found,) = trained(training_of(step)).findings(PaddingInLoss())
    assert found.tensor == "usage/target/cross_entropy_loss_0/padded_0"


def test_padding_that_is_ignored(trained):
    assert trained(training_of(ignored)).findings(PaddingInLoss()) == []


def full(x):
    return torch.randint(2, 11, x.shape)


def everywhere(x):
    """As of an image, whose edges are of the one colour that is most of it."""
    x = x.clone()
    x[:, 2] = PAD
    return x


def by_chance(x):
    """Rows that end in two of one token, each in another."""
    x = full(x)
    x[:, -2:] = torch.arange(len(x))[:, None] % 9 + 2
    x[:, :-2] = x[:, :-2].where(x[:, :-2] != x[:, -1:], torch.tensor(1))
    return x


@pytest.mark.parametrize("made", [full, everywhere, by_chance])
def test_rows_that_are_not_padded(trained, made):
    assert trained(training_of(lambda net, x: counted(net, made(x)))).findings(PaddingInLoss()) == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(counted, count=3))
    (found,) = run.findings(PaddingInLoss())
    assert run.findings(PaddingInLoss(patience=4)) == []
    assert run.findings(PaddingInLoss(padding=int(found.evidence["padding"]) + 20)) == []
    assert run.findings(PaddingInLoss(rows=SIZE)) == []


def test_a_row_that_begins_with_the_token_of_the_padding(trained):
    def step(net, x):
        x = x.clone()
        x[:, 0] = PAD
        return counted(net, x)

    assert len(trained(training_of(step)).findings(PaddingInLoss())) == 1


def test_what_padded_rows_are(trained):
    x = rows(END)
    assert (x[:-1, -2:] == PAD).all()


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(PaddingInLoss()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
