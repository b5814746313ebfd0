"""FirstOutputsTooLarge, on models that begin with outputs far too large, and on those that do not."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import FirstOutputsTooLarge
from smd_agent.rules.finding import Severity

ROWS, WORDS, WIDTH = 64, 50, 32


class Ratings(nn.Module):
    """Users and items, whose rows are multiplied with each other."""

    def __init__(self, std=None):
        super().__init__()
        self.users, self.items = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        for one in (self.users, self.items) if std is not None else ():
            nn.init.normal_(one.weight, std=std)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(1)


class Words(nn.Module):
    """Words that follow each other, with one matrix for the embedding and the head."""

    def __init__(self, std=None):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        if std is not None:
            nn.init.normal_(self.embedding.weight, std=std)

    def forward(self, words):
        return self.embedding(words) @ self.embedding.weight.t()


def words():
    return torch.randint(WORDS, (ROWS,))


def rate(model, loss_of=functional.mse_loss, scale=1.0):
    return loss_of(model(words(), words()), scale * torch.randn(ROWS))


def read(model):
    return functional.cross_entropy(model(words()), words())


def classify(model):
    return functional.cross_entropy(model(torch.randn(ROWS, 9)), words() % 3)


def training_of(make, loss_of, count=6):
    def training(capture):
        model = make()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()

    return training


@pytest.mark.parametrize("loss_of", [functional.mse_loss, functional.l1_loss, functional.huber_loss])
def test_predictions_that_are_spread_far_more_than_their_targets(trained, loss_of):
    (found,) = trained(training_of(Ratings, lambda model: rate(model, loss_of))).findings(FirstOutputsTooLarge())
    assert (found.severity, found.first_step, found.steps) == (Severity.NOTE, 0, 1)
    assert found.evidence["spread"] == pytest.approx(WIDTH**0.5, rel=0.3)
    assert found.evidence["target_spread"] == pytest.approx(1, rel=0.3)
    assert "predictions are spread" in found.cause


def test_a_loss_of_classes_far_above_that_of_a_guess(trained):
    (found,) = trained(training_of(Words, read)).findings(FirstOutputsTooLarge())
    assert found.evidence["guess"] == pytest.approx(math.log(WORDS))
    assert found.evidence["loss"] > 2 * math.log(WORDS)


class Angles(nn.Module):
    """The cosines of words and classes, with or without a scale that is learned."""

    def __init__(self):
        super().__init__()
        self.words, self.classes = nn.Embedding(WORDS, 2), nn.Embedding(WORDS, 2)
        self.scale = nn.Parameter(torch.tensor(60.0))

    def forward(self, words):
        return functional.normalize(self.words(words)) @ functional.normalize(self.classes.weight).t()


def of_angles(loss_of):
    return Angles, lambda model: loss_of(model, model(words()), words())


SCALED = {
    "a product": of_angles(lambda _, cosines, y: functional.cross_entropy(60 * cosines, y)),
    "a temperature": of_angles(lambda _, cosines, y: functional.cross_entropy(cosines / 0.015, y)),
    "a scale that is learned": of_angles(lambda model, cosines, y: functional.cross_entropy(model.scale * cosines, y)),
    "in place": of_angles(lambda _, cosines, y: functional.cross_entropy(cosines.mul_(60), y)),
    "masked": of_angles(
        lambda _, cosines, y: functional.cross_entropy((cosines / 0.015).masked_fill(cosines > 0.999, -1e4), y)
    ),
    "a tensor in front": of_angles(lambda _, cosines, y: functional.cross_entropy(torch.tensor(60.0) * cosines, y)),
    "by logarithms": of_angles(lambda _, cosines, y: functional.nll_loss((60 * cosines).log_softmax(1), y)),
}
UNSCALED = {
    "a division that makes them smaller": (Words, lambda model: functional.cross_entropy(model(words()) / 2, words())),
    "a product with many": (
        lambda: Words(3.0),
        lambda model: functional.cross_entropy(model(words()) * torch.ones(WORDS), words()),
    ),
}

HEALTHY = {
    **SCALED,
    "small rows": (lambda: Ratings(0.1), rate),
    "small words": (lambda: Words(0.02), read),
    "large targets": (Ratings, lambda model: rate(model, scale=5.0)),
    "small targets": (lambda: Ratings(0.3), lambda model: rate(model, scale=0.01)),
    "one target": (Ratings, lambda model: functional.mse_loss(model(words(), words()), torch.ones(ROWS))),
    "few rows": (Ratings, lambda model: functional.mse_loss(model(words()[:8], words()[:8]), torch.randn(8))),
    "a layer": (
        lambda: nn.Linear(9, 3),
        lambda model: functional.cross_entropy(model(torch.randn(ROWS, 9)), words() % 3),
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_others_are_left_alone(trained, name):
    assert trained(training_of(*HEALTHY[name])).verdict(FirstOutputsTooLarge()).findings == []


@pytest.mark.parametrize("name", UNSCALED)
def test_what_is_no_scale(trained, name):
    assert len(trained(training_of(*UNSCALED[name])).findings(FirstOutputsTooLarge())) == 1


def test_only_the_first_step_tells(trained):
    """Predictions that grow later, and those of a model that has been trained before, are none."""

    def make():
        return Ratings(0.1)

    def grows(model):
        loss = rate(model)
        with torch.no_grad():
            model.users.weight.mul_(5)
        return loss

    assert trained(training_of(make, grows)).verdict(FirstOutputsTooLarge()).findings == []


@pytest.mark.parametrize("settings, findings", [({}, 1), ({"spread": 30.0}, 0), ({"least": 30.0}, 0)])
def test_as_much_as_it_takes(trained, settings, findings):
    assert len(trained(training_of(Ratings, rate)).findings(FirstOutputsTooLarge(**settings))) == findings


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(FirstOutputsTooLarge()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
