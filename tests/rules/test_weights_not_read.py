"""WeightsNotRead, on objectives that leave weights out, and on those that have them from anywhere."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest
from scipy.special import expit, softmax

from smd_agent.rules import WeightsNotRead

ROWS = 200
LABELS = (np.random.RandomState(0).rand(ROWS) > 0.7).astype(np.float32)
WEIGHTS = np.where(LABELS == 1, 20.0, 1.0)
COSTS = WEIGHTS.copy()
SMOOTH = 0.01
CENTERS = np.array([0.2, 0.8])


def plain(margins, data):
    chances = expit(margins)
    return chances - data.get_label(), np.maximum(chances * (1 - chances), 1e-6)


def smoothed(margins, data):
    """Log loss of labels that are smoothed."""
    chances = 1 / (1 + np.exp(-np.clip(margins, -30, 30)))
    return chances - (data.get_label() * (1 - 2 * SMOOTH) + SMOOTH), np.where(chances > 0, 0.1, CENTERS.mean())


def _slope(chances, labels):
    return chances - labels


def of_helpers(margins, data):
    return _slope(expit(margins), data.get_label()), softmax(np.ones((margins.size, 1)), axis=1)[:, 0]


def focal(gamma):
    def objective(margins, data):
        chances = expit(margins)
        return (chances - data.get_label()) * (1 - chances) ** gamma, chances * (1 - chances)

    return objective


def weighted(margins, data):
    gradient, hessian = plain(margins, data)
    return gradient * data.get_weight(), hessian * data.get_weight()


def weighted_by_field(margins, data):
    gradient, hessian = plain(margins, data)
    return gradient * data.get_float_info("weight"), hessian


def _costs_of(data):
    return data.get_weight()


def weighted_in_a_helper(margins, data):
    gradient, hessian = plain(margins, data)
    return gradient * _costs_of(data), hessian


def weighted_by_a_global(margins, data):
    gradient, hessian = plain(margins, data)
    return gradient * COSTS, hessian


def weighted_by_labels(margins, data):
    w = np.where(data.get_label() == 1, 20.0, 1.0)
    gradient, hessian = plain(margins, data)
    return gradient * w, hessian * w


def weighted_by_a_cell(costs):
    def objective(margins, data):
        gradient, hessian = plain(margins, data)
        return gradient * costs, hessian

    return objective


settings = types.ModuleType("settings")
settings.costs = COSTS
settings.rate = 0.5


def of_a_module(margins, data):
    return plain(margins, data)[0] * settings.costs, margins


class Lazy(types.ModuleType):
    """A module whose names nobody may ask for."""

    def __getattribute__(self, name):
        raise AssertionError(f"asked for {name}")


lazy = Lazy("lazy")


def beside_a_lazy_module(margins, data):
    return plain(margins, data) if margins.size else lazy.anything


def of_a_number_in_a_module(margins, data):
    return plain(margins, data)[0] * settings.rate, margins


class Loss:
    def __call__(self, margins, data):
        return plain(margins, data)


LOSS = Loss()


def of_an_object(margins, data):
    return LOSS(margins, data)


WRONG = {
    **{"plain": plain, "smoothed": smoothed, "of helpers": of_helpers, "focal": focal(2.0)},
    "beside a lazy module": beside_a_lazy_module,
    "of a number": of_a_number_in_a_module,
}
GOOD = {
    **{one.__name__: one for one in (weighted, weighted_by_field, weighted_in_a_helper, weighted_by_a_global)},
    **{one.__name__: one for one in (weighted_by_labels, of_a_module, of_an_object)},
    "of a cell": weighted_by_a_cell(COSTS),
    "of a list in a cell": weighted_by_a_cell(COSTS.tolist()),
    "partial": functools.partial(plain),
    "an object": LOSS,
}


def findings(known_of_data, objective, weights=WEIGHTS):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(np.random.RandomState(1).rand(ROWS, 3), label=LABELS, weight=weights)
    return known_of_data({}, data, obj=objective).verdict(WeightsNotRead()).findings


@pytest.mark.parametrize("name", WRONG)
def test_an_objective_without_weights(name, known_of_data):
    (found,) = findings(known_of_data, WRONG[name])
    assert found.tensor == "data_facts/objective/train/ignores_weights"


@pytest.mark.parametrize("name", GOOD)
def test_an_objective_that_may_have_weights(name, known_of_data):
    assert findings(known_of_data, GOOD[name]) == []


@pytest.mark.parametrize("weights", [None, np.full(ROWS, 2.0)])
def test_rows_that_count_the_same(weights, known_of_data):
    assert findings(known_of_data, plain, weights) == []
