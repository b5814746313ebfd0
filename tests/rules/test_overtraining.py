"""Overtraining, on losses that stay where they are, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import Overtraining
from smd_agent.rules.finding import Severity

EVAL = ModeKeys.EVAL
LEARNED = [*np.geomspace(2.0, 0.5, 10)]


@pytest.fixture
def losses(written):
    """Write epochs of two training steps and one evaluation step."""

    def write(training, validation):
        run = written(losses="loss")
        for trained, evaluated in zip(training, validation, strict=True):
            run.step(loss=trained)
            run.step(loss=trained)
            run.step(EVAL, loss=evaluated)
        return run.ended()

    return write


def test_losses_that_stay(losses):
    course = LEARNED + [0.5] * 15
    (found,) = losses(course, course).findings(Overtraining())
    assert (found.severity, found.tensor, found.mode) == (Severity.NOTE, "loss", EVAL)
    assert found.evidence == {"best": 0.5, "best_training": 0.5, "for_validation": 15, "for_training": 15}
    assert (found.first_step, found.last_step, found.steps) == (10, 24, 15)


@pytest.mark.parametrize("more, finds", [(10, True), (9, False)])
def test_half_of_the_evaluations(losses, more, finds):
    course = LEARNED + [0.5] * more
    assert bool(losses(course, course).findings(Overtraining())) == finds
    late = LEARNED * 2 + [0.4] * 11
    assert losses(late, late).findings(Overtraining(patience_validation=10)) == []


@pytest.mark.parametrize(
    "training, validation",
    [
        # The training goes on becoming better.
        ([*np.geomspace(2.0, 0.1, 25)], LEARNED + [0.5] * 15),
        (LEARNED + [0.5] * 15, [*np.geomspace(2.0, 0.1, 25)]),
        # Both stay, the validation for less than half of the evaluations.
        (LEARNED + [0.5] * 20, LEARNED + [0.5] * 7 + [0.4] * 13),
        # Nothing was learned, so nothing is too much.
        ([1.0] * 25, [1.0] * 25),
        ([*np.linspace(1.0, 0.91, 10)] + [0.91] * 15,) * 2,
    ],
)
def test_trainings_that_are_none(losses, training, validation):
    assert losses(training, validation).findings(Overtraining()) == []


@pytest.mark.parametrize("fall, finds", [(0.985, False), (0.995, True)])
def test_what_counts_as_better(losses, fall, finds):
    """The best is lower by more than a hundredth."""
    course = LEARNED + [0.5] * 12 + [0.5 * fall] * 3
    assert bool(losses(course, course).findings(Overtraining())) == finds
    assert bool(losses(course, course).findings(Overtraining(share=0.02)))


def test_runs_with_few_evaluations_are_not_for_it(losses):
    assert losses(LEARNED[:9], LEARNED[:9]).verdict(Overtraining()).not_for_it == ["Overtraining"]
    assert losses(LEARNED, LEARNED).verdict(Overtraining()).judged == ["Overtraining"]


def test_as_it_is_documented(losses, met_at):
    course = [1.0, 0.5] + [0.495] * 12
    trial = losses(course, course).trial()
    # The best is at steps 3 and 5. Five training steps without a better one end at step 10 already; ten evaluations
    # without a better one end with that at step 35.
    assert met_at(Overtraining(base_trial=trial), trial) == list(range(35, 42))
    assert met_at(Overtraining(base_trial=trial, delta="0.001"), trial) == list(range(38, 42))
    assert met_at(Overtraining(base_trial=trial, patience_validation="11"), trial) == list(range(38, 42))
    assert met_at(Overtraining(base_trial=trial, patience_train="24"), trial) == list(range(39, 42))
    rule = Overtraining(base_trial=trial)
    assert (rule.patience_train, rule.patience_validation, rule.delta) == (5, 10, 0.01)


def test_as_it_is_documented_both_must_wait(losses, met_at):
    trial = losses([*np.linspace(2, 1, 20)], [0.5] * 20).trial()
    assert met_at(Overtraining(base_trial=trial), trial) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(Overtraining()).findings)} == {}
