"""LossAtGuessing, on models that learn nothing from their inputs, and on those that learn something."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import LossAtGuessing
from smd_agent.rules.finding import Severity

CLASSES, ROWS = 3, 64


def training_of(labels, loss=functional.cross_entropy, outputs=CLASSES, rate=0.01, count=100, optimizers=1):
    """Train with labels that are a function of the inputs, or of nothing."""

    def training(capture):
        model = nn.Linear(6, outputs)
        nn.init.zeros_(model.weight)
        capture(model)
        parts = [[*model.parameters()]] if optimizers == 1 else [[model.weight], [model.bias]]
        updates = [torch.optim.SGD(part, rate) for part in parts]
        for _ in range(count):
            x = torch.randn(ROWS, 6)
            y = labels(x)
            model.zero_grad()
            loss(model(x), y).backward()
            for one in updates:
                one.step()

    return training


def at_random(x):
    return torch.randint(0, CLASSES, (ROWS,))


def mostly_one(x):
    return torch.multinomial(torch.tensor([0.8, 0.1, 0.1]), ROWS, replacement=True)


def yes_or_no(x):
    """Two columns, of which the second is rarely yes."""
    return (torch.rand(ROWS, 2) < torch.tensor([0.5, 0.1])).float()


def partner(x):
    return torch.arange(ROWS)


def can_be_learned(x):
    return x[:, :CLASSES].argmax(1)


def entropy(*shares):
    return -sum(share * math.log(share) for share in shares)


EVEN, MOSTLY_ONE = math.log(3), entropy(0.8, 0.1, 0.1)
OF_COLUMNS = (entropy(0.5, 0.5) + entropy(0.1, 0.9)) / 2
WEIGHTS = torch.tensor([1.0, 4.0, 4.0])
FAULTS = {
    "labels at random": (at_random, nn.CrossEntropyLoss(), EVEN),
    "logarithms": (at_random, lambda y, t: functional.nll_loss(y.log_softmax(1), t), EVEN),
    "frequent labels": (mostly_one, functional.cross_entropy, MOSTLY_ONE),
    "weights": (mostly_one, nn.CrossEntropyLoss(WEIGHTS), entropy(0.5, 0.25, 0.25)),
    "smoothed labels": (at_random, nn.CrossEntropyLoss(label_smoothing=0.2), EVEN),
    "a sum": (at_random, nn.CrossEntropyLoss(reduction="sum"), EVEN),
    "a contrast": (partner, lambda y, t: functional.cross_entropy(y @ y.T * 0.01, t), math.log(ROWS)),
    "yes or no": (yes_or_no, lambda y, t: functional.binary_cross_entropy_with_logits(y[:, :2], t), OF_COLUMNS),
    "probabilities": (yes_or_no, lambda y, t: nn.BCELoss(reduction="none")(y[:, :2].sigmoid(), t).mean(), OF_COLUMNS),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_learns_nothing_from_its_inputs(trained, name):
    labels, loss, guess = FAULTS[name]
    rate = 0.5 / ROWS if name == "a sum" else 0.5
    (found,) = trained(training_of(labels, loss, rate=rate, count=150)).findings(LossAtGuessing())
    assert found.severity is Severity.WARNING
    assert found.tensor.endswith("_0/loss")
    first = 19 if name == "a contrast" else 0
    assert (found.first_step, found.last_step) == (first, 149)
    assert found.evidence["guess"] == pytest.approx(guess, rel=0.02)
    assert found.evidence["loss"] == pytest.approx(guess, rel=0.1)
    assert found.evidence["learned"] <= found.evidence["best"] < 0.05


GOOD = {
    "labels that follow from inputs": training_of(can_be_learned, rate=1.0),
    "labels that can be seen now and then": training_of(
        lambda x: torch.where(torch.rand(ROWS) < 0.4, can_be_learned(x), at_random(x)), rate=1.0, count=150
    ),
    "two optimizers": training_of(at_random, optimizers=2),
    "a loss that still falls": training_of(can_be_learned, rate=0.003),
    "labels that are all the same": training_of(lambda x: torch.zeros(ROWS, dtype=torch.int64)),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_learns_or_may_stay_there(trained, name):
    assert trained(GOOD[name]).findings(LossAtGuessing()) == []


def test_too_few_steps(trained):
    verdict = trained(training_of(at_random, count=99)).verdict(LossAtGuessing())
    assert (verdict.findings, verdict.not_for_it) == ([], ["LossAtGuessing"])
    (unjudged,) = trained(training_of(at_random, count=130), every=40).verdict(LossAtGuessing()).not_judged
    assert unjudged.reason == "it takes 20 saved training steps to judge"
    assert unjudged.too_few_steps


def test_few_saved_steps_and_the_loss_of_every_step(trained):
    (found,) = trained(training_of(at_random, count=150), every=10).findings(LossAtGuessing())
    assert (found.first_step, found.last_step, found.steps, found.every_step) == (0, 140, 141, True)
    assert trained(training_of(can_be_learned, rate=0.5, count=150), every=10).findings(LossAtGuessing()) == []


def test_the_loss_of_every_step_may_be_another_one(trained):
    def halved(y, t):
        return functional.cross_entropy(y, t) / 2

    assert len(trained(training_of(at_random, halved, count=150), every=10).verdict(LossAtGuessing()).not_judged) == 1


def deep(labels, rate):
    def training(capture):
        parts = [part for _ in range(5) for part in (nn.Linear(32, 32), nn.ReLU())]
        model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), *parts, nn.Linear(32, CLASSES))
        capture(model)
        optimizer = torch.optim.Adam(model.parameters(), rate)
        for _ in range(300):
            x = torch.randn(ROWS, 6)
            optimizer.zero_grad()
            functional.cross_entropy(model(x), labels(x)).backward()
            optimizer.step()

    return training


def test_a_learning_rate_that_overwrites_the_weights_is_the_cause(trained):
    (found,) = trained(deep(can_be_learned, 0.3), every=2).findings(LossAtGuessing())
    assert "learning rate is far too high" in found.cause
    assert found.evidence["update"] > 0.05


def test_it_is_not_the_cause_of_labels_at_random(trained):
    (found,) = trained(deep(at_random, 1e-4), every=10).findings(LossAtGuessing())
    assert "learning rate is far too high" not in found.cause
    assert trained(deep(can_be_learned, 3e-3), every=10).findings(LossAtGuessing()) == []


def test_models_of_a_search_are_judged_one_by_one(trained):
    def fits(*counts):
        def training(capture):
            for count in counts:
                training_of(at_random, count=count)(capture)

        return training

    assert trained(fits(*[40] * 6)).verdict(LossAtGuessing()).findings == []
    (found,) = trained(fits(40, 120)).findings(LossAtGuessing())
    # The first step of a model has no guess.
    assert (found.first_step, found.last_step) == (41, 159)


@pytest.fixture
def course(written):
    """Write a run with these losses, of labels of which a guess has a loss of 1."""

    def make(losses, every=1, guess=1.0, least=0.0):
        run = written(usage="^usage/")
        of = "usage/loss/cross_entropy_loss_0"
        for loss in losses:
            numbers = {f"{of}/loss": loss, f"{of}/guess": guess, f"{of}/least": least}
            run.step(**numbers)
            run._counts = {mode: count + every - 1 for mode, count in run._counts.items()}
            run._step += every - 1
        return run.ended()

    return make


@pytest.mark.parametrize(
    "losses, findings",
    [
        ([0.951] * 100, 1),
        ([0.949] * 100, 0),
        ([0.951] * 40 + [0.949] * 20 + [0.951] * 40, 0),
        ([1.0] * 67 + [0.991] * 33, 1),
        ([1.0] * 67 + [0.989] * 33, 0),
        ([5.0] * 30 + [1.49] * 70, 1),
        ([5.0] * 30 + [1.51] * 70, 0),
        ([math.nan] * 50 + [1.0] * 100, 1),
        # So much noise that its mean tells nothing, and noise that leaves no doubt.
        ([0.8, 1.2] * 50, 0),
        ([0.9, 1.1] * 50, 1),
    ],
)
def test_at_the_threshold_and_beside_it(course, losses, findings):
    assert len(course(losses).findings(LossAtGuessing())) == findings


def test_the_way_is_from_a_guess_to_the_least_loss(course):
    assert len(course([0.951 * 0.2 + 0.8] * 100, least=0.8).findings(LossAtGuessing())) == 1
    assert course([0.949 * 0.2 + 0.8] * 100, least=0.8).findings(LossAtGuessing()) == []
    assert course([0.9] * 100, least=0.99).findings(LossAtGuessing()) == []


def test_steps_that_are_not_saved_count_too(course):
    assert len(course([1.0] * 30, every=5).findings(LossAtGuessing())) == 1
    assert len(course([1.0] * 19, every=6).verdict(LossAtGuessing()).not_judged) == 1
    assert course([1.0] * 49, every=2).verdict(LossAtGuessing()).not_for_it == ["LossAtGuessing"]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(LossAtGuessing()).findings)} == {}
