"""TooFewRounds, on learning rates and numbers of rounds that a test writes, and on those of a training."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import TooFewRounds
from smd_agent.rules.finding import Severity


@pytest.mark.parametrize(
    "rate, rounds, is_found",
    [
        *((0.001, 200, True), (0.01, 60, True), (0.01, 68, True), (0.0, 50, True), (0.02, 30, True)),
        *((0.01, 69, False), (0.1, 20, False), (0.3, 20, False), (1.0, 20, False), (0.001, 3000, False)),
        # A trial of the program.
        *((0.01, 5, False), (0.001, 19, False)),
    ],
)
def test_rates_and_rounds(written, rate, rounds, is_found):
    run = written(data_facts="^data_facts/")
    numbers = {"learning_rate": rate, "asked": rounds}
    run.step(ModeKeys.GLOBAL, **{f"data_facts/rounds/train/{name}": [number] for name, number in numbers.items()})
    found = run.ended().findings(TooFewRounds())
    assert [one.severity for one in found] == [Severity.WARNING] * is_found
    assert all(one.evidence == {**numbers, "left": pytest.approx((1 - rate) ** rounds)} for one in found)


@pytest.mark.parametrize(
    "parameters, of_call, is_found",
    [
        ({"eta": 0.001}, {}, True),
        ({"learning_rate": 0.001, "objective": "binary:logistic"}, {}, True),
        ({"eta": 0.1}, {}, False),
        ({"eta": 0.001}, {"num_boost_round": 5000}, False),
        ({"eta": 0.001}, {"xgb_model": "a model that goes on"}, False),
        ({"eta": 0.001, "booster": "gblinear"}, {}, False),
    ],
)
def test_what_a_training_is_told(known_of_training, parameters, of_call, is_found):
    rows = np.random.RandomState(0).rand(50, 3)
    run = known_of_training(parameters, rows, rows[:, 0] > 0.5, **{"num_boost_round": 200, **of_call})
    assert bool(run.verdict(TooFewRounds()).findings) is is_found


def test_a_rate_that_a_callback_changes(known_of_training):
    xgboost = pytest.importorskip("xgboost")
    rows = np.random.RandomState(0).rand(50, 3)
    schedule = xgboost.callback.LearningRateScheduler(lambda number: 0.1)
    run = known_of_training({"eta": 0.001}, rows, rows[:, 0], num_boost_round=200, callbacks=[schedule])
    assert run.verdict(TooFewRounds()).not_for_it == ["TooFewRounds"]
