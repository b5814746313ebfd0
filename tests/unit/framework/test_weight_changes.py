"""The arithmetic of updates that are computed by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.framework.weight_changes import Moved, changes, part_of


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_update_is_the_length_of_the_difference(dtype):
    before, after = np.array([3, 4], dtype), np.array([3, 4.5], dtype)
    [(moved, update, ratio)] = changes([Moved(["w"], 2, part_of(before), part_of(after))])
    assert (moved.names, update, ratio) == (["w"], 0.5, pytest.approx(0.1))


def test_what_has_moved_from_nothing_has_a_ratio_of_one():
    none, some = np.zeros(3, np.float32), np.ones(3, np.float32)
    found = changes([Moved(["a"], 3, none, some), Moved(["b"], 3, none, none)])
    assert [(update, ratio) for _, update, ratio in found] == [(pytest.approx(3**0.5), 1), (0, 0)]


@pytest.mark.parametrize("size", [1e38, 1e-38])
def test_lengths_do_not_overflow_and_do_not_vanish(size):
    before = part_of(np.full(4, size, np.float32))
    [(_, update, ratio)] = changes([Moved(["w"], 4, before, -before)])
    assert update == pytest.approx(4 * size, rel=1e-6)
    assert ratio == pytest.approx(2)


def test_what_is_infinite_or_no_number_is_computed_in_silence():
    with np.errstate(all="raise"):
        bad = np.array([np.inf, 1], np.float32)
        found = changes([Moved(["a"], 2, bad, bad), Moved(["b"], 2, np.ones(2), bad)])
    assert np.isnan([*found[0][1:]]).all()
    assert [*found[1][1:]] == [np.inf] * 2


def test_what_is_looked_at_is_a_copy():
    array = np.ones(5, np.float32)
    part = part_of(array)
    array[:] = 0
    assert part.tolist() == [1] * 5


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-160, 1e-30, 1e30, 1e160, 1e300])
def test_lengths_whose_squares_leave_float64(size):
    before, after = np.full(4, size), np.full(4, 1.5 * size)
    ((_, update, ratio),) = changes([Moved(["x"], 4, before, after)])
    assert update == pytest.approx(size, rel=0.01)
    assert ratio == pytest.approx(0.5, rel=0.01)
