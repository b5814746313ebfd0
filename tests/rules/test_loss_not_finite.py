"""LossNotFinite, on trainings whose loss turns NaN for different reasons."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import LossNotFinite
from smd_agent.rules.finding import Severity

BAD = 17


def steps(capture, change, model=None, optimizer=None, loss=functional.mse_loss, count=30):
    """Train for some steps; ``change`` is told the step's number and gives what the batch becomes."""
    model = model or nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    capture(model)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05)
    for step in range(count):
        x, y = change(step, torch.randn(16, 6), torch.randn(16, 1))
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def nan_in_the_batch(step, x, y):
    if step == BAD:
        x[3, 2] = math.nan
    return x, y


def test_a_batch_with_nan(trained):
    (found,) = trained(lambda capture: steps(capture, nan_in_the_batch)).findings(LossNotFinite())
    assert found.cause == "The batch itself holds values that are not finite, while the weights do not"


def test_a_batch_with_nan_and_the_culprit(trained):
    (found,) = trained(lambda capture: steps(capture, nan_in_the_batch), blame=True).findings(LossNotFinite())
    assert found.severity is Severity.PROBLEM
    assert (found.tensor, found.first_step, found.last_step, found.steps) == ("Loss_output_0", BAD, 29, 13)
    assert found.evidence["last_finite_step"] == BAD - 1
    assert 0 < found.evidence["last_finite_loss"] < 100
    assert found.cause.startswith(f"At step {BAD}, loss is not finite: the batch that")
    assert found.cause.endswith("has NaN in row 3")
    assert 0 < found.evidence["others_not_finite"] < found.evidence["others"]


def test_weights_that_were_broken_between_saved_steps(trained):
    run = trained(lambda capture: steps(capture, nan_in_the_batch), every=4, blame=True)
    (found,) = run.findings(LossNotFinite())
    assert (found.tensor, found.first_step, found.evidence["last_finite_step"]) == ("series/loss", BAD, BAD - 1)
    assert found.cause.startswith(f"At step {BAD}, loss is not finite: the batch that")


def test_weights_that_an_update_has_broken(trained):
    def diverges(capture):
        model = nn.Linear(6, 1)
        steps(capture, lambda step, x, y: (x, y), model, torch.optim.SGD(model.parameters(), 1e18))

    (found,) = trained(diverges, blame=True).findings(LossNotFinite())
    assert found.first_step > 0
    assert found.evidence["last_finite_step"] == found.first_step - 1
    assert found.cause.startswith("The loss had grown many times")
    assert "mse_loss" in found.cause


def test_weights_that_a_derivative_has_broken(trained):
    """The loss of a pair of one and the same row is 0, and so is what its root is taken of."""

    def pairs(step, x, y):
        return (x if step != BAD else x[:1].expand(16, 6)), y

    def distances(output, _):
        return ((output[:8] - output[8:]) ** 2).sum(1).sqrt().mean()

    (found,) = trained(lambda capture: steps(capture, pairs, loss=distances)).findings(LossNotFinite())
    assert (found.tensor, found.first_step) == ("Loss_output_0", BAD + 1)
    assert found.cause.startswith("The loss was finite one step before, and its gradients were not: a derivative")


@pytest.mark.parametrize("finite, told", [(1, True), (2, True), (3, False)])
def test_the_learning_rate_is_not_ruled_out_by_a_few_finite_losses(written, finite, told):
    run = written(losses="loss", weights="weight")
    for loss in [*[0.5] * finite, math.nan]:
        run.step(loss=[loss], weight=[1e3])
    (found,) = run.ended().findings(LossNotFinite())
    assert ("an update that was too large" in found.cause) is told
    assert found.advice.startswith("Lower the learning rate") is told


def test_a_logarithm_of_0(trained):
    def of_log(capture):
        def loss(output, y):
            # The sum that is taken out again is what the step's loss is made of.
            return (
                (output * (y == 7).any()).sum().exp().log().log() + 0 * output.sum()
                if (y == 7).any()
                else output.pow(2).mean()
            )

        def change(step, x, y):
            return (x * 0, y * 0 + 7) if step == BAD else (x, y)

        model = nn.Linear(6, 1, bias=False)
        steps(capture, change, model, loss=loss)

    (found,) = trained(of_log, blame=True).findings(LossNotFinite())
    assert found.first_step == BAD
    assert "log in what computes the loss after the model made -inf of values from 0 to 0" in found.cause


@pytest.mark.parametrize("ignored", [-100, 3])
@pytest.mark.parametrize("blame", [False, True])
def test_a_batch_of_which_no_label_counts(trained, ignored, blame):
    def change(step, x, y):
        y = torch.arange(16) % 3
        return x, torch.full_like(y, ignored) if step == BAD else y

    def loss(output, y):
        return functional.cross_entropy(output, y, ignore_index=ignored)

    run = trained(lambda capture: steps(capture, change, nn.Linear(6, 3), loss=loss), blame=blame)
    (found,) = run.findings(LossNotFinite())
    assert (found.first_step, found.severity) == (BAD, Severity.WARNING)
    assert found.cause.startswith("All labels of this batch have the value that the loss ignores")
    assert found.advice.startswith("Divide the sum of the losses by the number of labels")


def test_the_loss_of_every_step_has_the_cause_that_a_saved_one_shows(trained):
    def change(step, x, y):
        y = torch.arange(16) % 3
        return x, torch.full_like(y, -100) if step >= BAD else y

    loss = functional.cross_entropy
    found = trained(lambda capture: steps(capture, change, nn.Linear(6, 3), loss=loss), every=2).findings(
        LossNotFinite()
    )
    assert "series/loss" in [one.tensor for one in found]
    assert all(one.cause.startswith("All labels of this batch") for one in found)


def test_one_that_is_finite_again_is_a_warning(trained):
    def passes_over(capture):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 6)).pow(2).mean() * (math.inf if step == 5 else 1)
            loss.backward()
            if step == 5:
                optimizer.zero_grad()
            optimizer.step()

    (found,) = trained(passes_over).findings(LossNotFinite())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.last_step, found.steps) == (5, 5, 1)


def test_the_loss_of_each_row(trained):
    def rows(capture):
        model, loss = nn.Linear(6, 1), nn.MSELoss(reduction="none")
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(8):
            x, y = nan_in_the_batch(BAD - 4 + step, torch.randn(100, 6), torch.randn(100, 1))
            optimizer.zero_grad()
            loss(model(x), y).nanmean().backward()
            optimizer.step()

    found = trained(rows, blame=True).findings(LossNotFinite())
    # What is left out of the mean still makes gradients NaN, and by them the next loss.
    assert {one.tensor: one.first_step for one in found} == {"MSELoss_output_0": 4, "Loss_output_0": 5}
    assert "the batch that Linear was given has NaN in row 3" in found[1].cause


def measured(written, *values, loss=0.5):
    """A run with these values of a metric."""
    run = written(losses="^train-logloss$", metrics="^train-")
    for value in values:
        run.step(ModeKeys.GLOBAL, **{"train-logloss": [loss]} if loss else {}, **{"train-auc": [value]})
    return run.ended()


@pytest.mark.parametrize("loss", [0.5, None])
def test_a_metric_that_is_never_finite(written, loss):
    (found,) = measured(written, *[math.nan] * 5, loss=loss).findings(LossNotFinite())
    assert (found.severity, found.tensor, found.short) == (Severity.WARNING, "train-auc", "train-auc is never finite")
    assert (found.first_step, found.last_step, found.steps) == (2, 4, 3)
    assert "of one class" in found.cause


@pytest.mark.parametrize("values", [[math.nan] * 2, [math.nan] * 4 + [0.5] + [math.nan] * 4, [0.5] + [math.nan] * 5])
def test_a_metric_that_is_finite_somewhere_or_hardly_seen(written, values):
    assert measured(written, *values).findings(LossNotFinite()) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:.*Dataset is empty")
def test_the_metric_of_a_training_whose_labels_are_of_one_class(boosted):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    how = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}
    (found,) = boosted(how, rows, np.zeros(60), 5).findings(LossNotFinite())
    assert (found.severity, found.tensor) == (Severity.WARNING, "train-auc")
    assert boosted(how, rows, np.arange(60) % 2, 5).findings(LossNotFinite()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(LossNotFinite()))} == {}


@pytest.mark.parametrize("bad, cause", [(False, "The weights were finite"), (True, "Weights were not finite")])
def test_without_a_culprit_the_tensors_of_the_step_tell(written, bad, cause):
    run = written(losses="loss", weights="weight")
    for _ in range(4):
        run.step(loss=[0.5], weight=[1.0])
    run.step(loss=[math.nan], weight=[math.nan if bad else 1.0])
    (found,) = run.ended().findings(LossNotFinite())
    assert found.cause.startswith(cause)
