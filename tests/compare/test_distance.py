"""How far values and statistics are apart, and in which order tensors come to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smd_agent.compare.distance import NOT_COMPARABLE, counts_apart, statistics_apart, values_apart
from smd_agent.compare.rounding_bounds import PROFILES, UNITS, Noise, coarsest
from smd_agent.compare.tensor_order import Kind, in_order, kinds_of
from smd_agent.core.collection import Collection


def test_values_are_apart_relative_to_the_tensor():
    here = np.array([3.0, 4.0, 0.0])
    assert values_apart(here, here.copy()) is None
    assert values_apart(here, np.array([3.0, 4.0, -0.0])) is None
    found = values_apart(here, np.array([3.0, 4.5, 0.0]))
    assert (found.what, found.here, found.there, found.differing, found.size) == ("element (1)", 4.0, 4.5, 1, 3)
    # The largest element is 4.5, the norm of the larger one 5.41.
    assert found.relative == pytest.approx(0.5 / 4.5)
    many = values_apart(np.ones(100), np.full(100, 1.01))
    assert many.relative == pytest.approx(0.01 / 1.01)
    single = values_apart(np.float32(2.0).reshape(()), np.float32(1.0).reshape(()))
    assert (single.what, single.relative) == ("value", 0.5)


def test_large_and_small_numbers_are_compared_too():
    assert values_apart(np.array([1e300, 0]), np.array([0.5e300, 0])).relative == 0.5
    assert values_apart(np.array([1e-310, 0]), np.array([0.5e-310, 0])).relative == pytest.approx(0.5)


@pytest.mark.parametrize(
    "here, there, what",
    [
        (np.array([1, 2]), np.array([1, 3]), "element (1)"),
        (np.array([2**62]), np.array([2**62 + 1]), "value"),
        (np.array([True]), np.array([False]), "value"),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), "element (1)"),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf]), "element (1)"),
        (np.ones((2, 3)), np.ones((3, 2)), "shape"),
        (np.ones(2), np.ones(3), "shape"),
        (np.array(["a"]), np.array(["b"]), "text"),
        (np.array(["a"]), np.array([1.0]), "text"),
    ],
)
def test_what_differs_other_than_by_a_size(here, there, what):
    found = values_apart(here, there)
    assert (found.relative, found.what) == (NOT_COMPARABLE, what)


def test_whole_numbers_of_64_bits_are_told_whole():
    found = values_apart(np.array([2**62]), np.array([2**62 + 1]))
    assert (found.here, found.there) == (str(2**62), str(2**62 + 1))


def test_a_whole_number_against_one_with_a_point():
    assert values_apart(np.array(0), np.array(0.0)) is None
    assert values_apart(np.array(0), np.array(0.9)).relative == 1


@pytest.mark.parametrize(
    "name, here, there, relative",
    [
        # A mean near 0 is the difference of large numbers.
        ("mean", 1e-9, 2e-9, 5e-10),
        ("std", 2.0, 1.0, 0.5),
        ("min", -1.0, -2.0, 0.25),
        ("l2", 4.0, 5.0, 0.2),
        ("sum", 1e-6, 2e-6, 5e-9),
        ("variance", 4.0, 1.0, 0.75),
        ("zero_share", 0.5, 0.51, 0.0),
        ("zero_share", 0.5, 0.75, 0.25),
        ("nan_count", 0.0, 1.0, NOT_COMPARABLE),
        ("mean", math.nan, 1.0, NOT_COMPARABLE),
    ],
)
def test_statistics_are_apart_relative_to_the_tensor(name, here, there, relative):
    others = {"abs_mean": 2.0, "max": 4.0}
    found = statistics_apart({**others, name: here}, {**others, name: there}, 100)
    assert (found.what, found.here, found.there) == (name, here, there)
    assert found.relative == pytest.approx(relative)
    assert statistics_apart({**others, name: here}, {**others, name: here}) is None


def test_a_median_near_0_is_apart_relative_to_the_other_percentiles():
    here, there = ({"p5": -2.0, "p50": middle, "p95": 2.0, "l2": 30.0} for middle in (1e-9, 2e-9))
    assert statistics_apart(here, there).relative == pytest.approx(5e-10)
    # Without these, to the root of the mean of squares.
    here, there = ({"p50": middle, "l2": 30.0} for middle in (1e-9, 2e-9))
    assert statistics_apart(here, there, 100).relative == pytest.approx(1e-9 / 3)


def test_statistics_that_only_one_has_are_not_compared():
    assert statistics_apart({"mean": 1.0}, {"std": 2.0}) is None
    assert statistics_apart({"l2": 1.0}, {"l2": 1.0 + 1e-6}, None, 1e-5) is None
    assert statistics_apart({"l2": 1.0}, {"l2": 1.0 + 2e-5}, None, 1e-5) is not None


def test_histograms():
    here, there = np.zeros(260, np.int64), np.zeros(260, np.int64)
    here[[5, 6]] = 10
    there[[6, 7]] = 10
    assert counts_apart(here, here) is None
    assert counts_apart(here, there).relative == 0.5
    there[7] = 11
    assert counts_apart(here, there).relative == NOT_COMPARABLE


def test_tensors_in_the_order_in_which_they_come_to_be():
    collections = {
        name: Collection(name, regex)
        for name, regex in {
            "weights": r"^Net_.*weight$",
            "biases": r"^Net_.*bias$",
            "gradients": "^gradient/",
            "losses": "loss",
            "optimizer": "^optimizer/",
            "updates": "^update/",
            "input_digests": "^input_digest/",
        }.items()
    }
    stored = [
        "Net_fc1.weight",
        "Net_fc2.weight",
        "Net_fc1.bias",
        "Net_input_0",
        "fc1_input_0",
        "input_digest/Net_0",
        "fc1_output_0",
        "fc2_input_0",
        "fc2_output_0",
        "loss_output_0",
        "gradient/Net_fc1.weight",
        "gradient/Net_fc2.weight",
        "gradient/Net_fc1.bias",
        "update/Net_fc1.weight",
        "optimizer/SGD/lr",
    ]
    # Weights stand in front of the inputs in a step, and tell nothing of where layers begin.
    kinds = kinds_of(stored, collections)
    assert [name for name in stored if kinds[name] is Kind.INPUT] == [
        "Net_input_0",
        "fc1_input_0",
        "input_digest/Net_0",
    ]
    assert in_order(stored, kinds) == [
        "Net_input_0",
        "fc1_input_0",
        "input_digest/Net_0",
        "Net_fc1.weight",
        "Net_fc2.weight",
        "Net_fc1.bias",
        "fc1_output_0",
        "fc2_input_0",
        "fc2_output_0",
        "loss_output_0",
        "gradient/Net_fc2.weight",
        "gradient/Net_fc1.weight",
        "gradient/Net_fc1.bias",
        "optimizer/SGD/lr",
        "update/Net_fc1.weight",
    ]


def test_noise_grows_with_type_size_layers_and_updates():
    noise = Noise(UNITS["float32"], 256, 4)
    assert noise.bound(0) == pytest.approx(4 * 2.0**-24 * (2 + 16))
    assert noise.bound(99) == pytest.approx(10 * noise.bound(0))
    assert Noise(UNITS["float32"], 1024, 4).bound(0) > noise.bound(0)
    # In bfloat16 sums are in float32.
    assert Noise(UNITS["bfloat16"], 256, 4).bound(0) == pytest.approx(4 * (2.0**-8 * 2 + 2.0**-24 * 16))
    assert noise.gradient_bound(0) > noise.bound(0)
    assert {name: unit for name, unit in PROFILES.items() if name in UNITS} == {
        name: UNITS[name] for name in PROFILES if name in UNITS
    }
    assert coarsest({"float32", "bfloat16", "int64"}) == "bfloat16"
    assert coarsest({"int64"}) is None
