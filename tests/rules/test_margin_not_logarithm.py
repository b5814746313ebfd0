"""MarginNotLogarithm, on exposures given as they are, and on margins that are logarithms."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import MarginNotLogarithm

ROWS = 6000
SHARES = np.clip(np.random.RandomState(1).beta(0.9, 0.8, ROWS), 0.03, 1.0)
YEARS = np.random.RandomState(2).uniform(1.0, 10.0, ROWS)
SCORES = np.clip(np.random.RandomState(3).normal(2.0, 0.5, ROWS), 0.05, None)


def counts(expected, seed=4):
    return np.random.RandomState(seed).poisson(expected).astype(np.float32)


def amounts(expected):
    return (expected * np.random.RandomState(5).gamma(2.0, 0.5, ROWS)).astype(np.float32)


# What differs between rows beside the exposure, which the margins do not have.
SPREAD = np.exp(np.random.RandomState(6).normal(0.0, 0.4, ROWS))

WRONG = {
    "shares of a year": (SHARES, counts(SHARES * SPREAD), "count:poisson"),
    "years": (YEARS, counts(YEARS * SPREAD / 4), "count:poisson"),
    "days": (YEARS * 30, counts(YEARS * SPREAD / 4), "count:poisson"),
    "amounts": (YEARS, amounts(YEARS * SPREAD), "reg:gamma"),
    "amounts and none": (YEARS, counts(YEARS * SPREAD) * 10, "reg:tweedie"),
}
GOOD = {
    "logarithms": (np.log(SHARES), counts(SHARES * SPREAD), "count:poisson"),
    "logarithms above 0": (np.log(YEARS + 1), counts((YEARS + 1) * SPREAD), "count:poisson"),
    "of a model before": (SCORES, counts(np.exp(SCORES) * SPREAD), "count:poisson"),
    "of a model that is too sure": (SCORES, counts(np.exp(0.4 * SCORES) * SPREAD), "count:poisson"),
    "of a model that is not sure enough": (SCORES, counts(np.exp(1.5 * SCORES) * SPREAD), "count:poisson"),
    "of a model that is wrong": (SCORES, counts(np.exp(-SCORES) * SPREAD), "count:poisson"),
    "of no use": (SCORES, counts(SPREAD), "count:poisson"),
    "amounts": (SCORES, amounts(np.exp(SCORES) * SPREAD), "reg:gamma"),
    "logarithms of a wide range": (np.log(YEARS * 1e4), counts(YEARS * SPREAD), "count:poisson"),
    "one row has all": (YEARS * 1e3, 5 * (YEARS.min() == YEARS), "count:poisson"),
    "the same": (np.full(ROWS, 0.5), counts(SHARES * SPREAD), "count:poisson"),
    "of an identity": (YEARS, counts(YEARS * SPREAD), "reg:squarederror"),
    "no labels above 0": (SHARES, np.zeros(ROWS, np.float32), "count:poisson"),
}


def findings(known_of_data, margins, labels, objective):
    xgboost = pytest.importorskip("xgboost")
    table = np.random.RandomState(0).rand(ROWS, 3)
    data = xgboost.DMatrix(table, label=labels, base_margin=margins)
    return known_of_data({"objective": objective}, data).verdict(MarginNotLogarithm()).findings


@pytest.mark.parametrize("name", WRONG)
def test_exposures_that_are_no_logarithms(name, known_of_data):
    (found,) = findings(known_of_data, *WRONG[name])
    assert found.tensor == "data_facts/margins/train/over_logarithm"
    assert found.evidence["over_power"] >= 2.5


@pytest.mark.parametrize("name", GOOD)
def test_margins_that_are_logarithms(name, known_of_data):
    assert findings(known_of_data, *GOOD[name]) == []


def test_few_rows_say_nothing(known_of_data):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.ones((40, 1)), label=counts(SHARES)[:40], base_margin=SHARES[:40])
    run = known_of_data({"objective": "count:poisson"}, data)
    assert run.findings(MarginNotLogarithm()) == []
