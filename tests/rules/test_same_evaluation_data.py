"""SameEvaluationData, on metrics that a test writes and on trees."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import SameEvaluationData
from smd_agent.rules.finding import Severity

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 5))
LABELS = (ROWS[:, 0] + RNG.normal(size=200) > 0).astype(int)
HOW = {"objective": "binary:logistic", "eval_metric": ["error", "logloss"]}


def test_the_training_rows_twice(boosted):
    run = boosted(HOW, ROWS, LABELS, train=(ROWS, LABELS), valid=(ROWS, LABELS))
    (found,) = run.findings(SameEvaluationData())
    assert (found.severity, found.tensor) == (Severity.WARNING, "valid-error")
    assert (found.first_step, found.last_step, found.steps) == (0, 19, 20)
    assert "train and valid" in found.cause
    assert found.evidence == {"rounds": 3, "metrics": 2}


def test_rows_of_its_own(boosted):
    run = boosted(HOW, ROWS[:150], LABELS[:150], train=(ROWS[:150], LABELS[:150]), valid=(ROWS[150:], LABELS[150:]))
    assert run.findings(SameEvaluationData()) == []


def test_one_set_is_not_for_it(boosted):
    assert boosted(HOW, ROWS, LABELS, rounds=5).verdict(SameEvaluationData()).not_for_it == ["SameEvaluationData"]


@pytest.mark.parametrize(
    "rounds, finds",
    [
        ([(0.3, 0.3), (0.2, 0.2), (0.1, 0.1)], True),
        ([(0.3, 0.3), (0.2, 0.2)], False),
        # Separated from the start: of what stands still nothing can be said.
        ([(0.0, 0.0)] * 9 + [(0.1, 0.1)], False),
        ([(0.3, 0.3), (0.2, 0.2), (0.1, math.nextafter(0.1, 1))], False),
        ([(0.3, 0.3), (0.2, 0.2), (0.1, 0.1), (0.05, 0.06), (0.04, 0.04)], False),
    ],
)
def test_the_same_to_the_last_bit_at_all_rounds(written, rounds, finds):
    run = written(metrics="^[^-]+-.+$", feature_importance="^feature_importance/")
    for train, valid in rounds:
        run.step(ModeKeys.GLOBAL, train__logloss=[train], valid__logloss=[valid])
    assert bool(run.ended().verdict(SameEvaluationData()).findings) == finds


def test_one_metric_of_several_that_differs(written):
    run = written(metrics="^[^-]+-.+$", feature_importance="^feature_importance/")
    for error in (0.3, 0.2, 0.1):
        run.step(ModeKeys.GLOBAL, train__error=[error], valid__error=[error], train__auc=[0.9], valid__auc=[0.8])
    assert run.ended().findings(SameEvaluationData()) == []
