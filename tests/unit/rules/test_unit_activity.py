"""How often units are active, and how many are dead beyond what a small batch makes look so."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules.unit_activity import activity, dead_beyond_chance


@pytest.mark.parametrize(
    "shape, others", [((50, 3), 0), ((5, 10, 3), (0, 1)), ((5, 3, 2, 5), (0, 2, 3)), ((5, 3, 2, 5, 2), (0, 2, 3, 4))]
)
def test_units_lie_along_an_axis(shape, others):
    active = np.random.default_rng(0).random(shape) < 0.3
    found = activity(active)
    assert found.shape == (3,)
    np.testing.assert_allclose(found, 100 * active.mean(others))


def test_of_one_axis_or_none_each_element_is_a_unit():
    assert activity(np.array([True, False])).tolist() == [100, 0]
    assert activity(np.array(True)).tolist() == [100]


@pytest.mark.parametrize("dead", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("zero", [0.5, 0.9, 0.98])
@pytest.mark.parametrize("count", [8, 64])
def test_units_that_are_0_by_chance_are_told_from_dead_ones(dead, zero, count):
    random = np.random.default_rng(0)
    units = 40_000
    is_zero = random.random((count, units)) < zero
    is_zero[:, : int(dead * units)] = True
    found = dead_beyond_chance(float(is_zero.all(0).mean()), float(is_zero.mean()), count)
    assert found == pytest.approx(dead, abs=0.03 if zero < 0.95 or count > 8 else 0.15)


def test_what_is_all_0_is_dead():
    assert dead_beyond_chance(1.0, 1.0, 8) == 1


def test_one_element_a_unit_tells_nothing():
    assert dead_beyond_chance(0.7, 0.7, 1) == 0


def test_a_smaller_count_finds_less():
    found = [dead_beyond_chance(0.7, 0.97, count) for count in (20, 16, 12, 11)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]
