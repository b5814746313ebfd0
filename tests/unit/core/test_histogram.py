"""The histogram by sign and power of two against one that is counted element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smd_agent.core.reductions import count_by_size
from smd_agent.core.reductions.histogram import BUCKETS, FINE_BUCKETS, PIECE, sizes

pytestmark = pytest.mark.usefixtures("implementation")


def one_by_one(values):
    """The counts as the documentation describes them, from Python's floats."""
    counts = [0] * BUCKETS
    for x in values:
        if math.isnan(x):
            counts[259] += 1
        elif math.isinf(x):
            counts[258 if x > 0 else 0] += 1
        elif x == 0:
            counts[129] += 1
        else:
            # frexp's fraction is from 0.5 on, and below 1.
            exponent = max(-64, min(63, math.frexp(abs(x))[1] - 1))
            counts[exponent + 194 if x > 0 else 64 - exponent] += 1
    return counts


def assert_counted(array):
    found = count_by_size(array)
    assert found.dtype == np.int64
    assert found.shape == (BUCKETS,)
    assert found.tolist() == one_by_one([float(value) for value in array.reshape(-1)])
    assert found.sum() == array.size


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 4097, PIECE + 3])
def test_floats_of_all_sizes(dtype, size):
    rng = np.random.default_rng(size)
    exponents = rng.uniform(*{"f2": (-25, 15)}.get(dtype, (-100, 100)), size)
    x = (rng.choice([-1, 1], size) * 2.0**exponents).astype(dtype)
    x[: size // 5] = 0
    assert_counted(x)
    if size > 3:
        x[[0, 1, 2, -1]] = np.nan, np.inf, -np.inf, -0.0
        x[size // 2] = -np.nan
        assert_counted(x)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "u8"])
def test_elements_that_do_not_lie_next_to_each_other(dtype):
    x = (5 * np.random.default_rng(0).standard_normal((4100, 3))).astype(dtype)
    for view in (x[:, 1], x[::-1, 2], x[:, ::2], x[::-1, ::-1], np.broadcast_to(x[:1, 0], 50)):
        assert_counted(view)


def test_a_nan_that_signals_is_counted_without_a_warning():
    for bits, dtype in ((0x7F800001, "f4"), (0x7FF0000000000001, "f8"), (0x7C01, "f2")):
        for order in "<>":
            found = count_by_size(np.full(3, bits, f"{order}u{dtype[1]}").view(order + dtype))
            assert found[259] == found.sum() == 3


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_borders_of_buckets(dtype):
    powers = np.array([2.0**e for e in (-127, -126, -65, -64, -63, -1, 0, 1, 62, 63, 64, 127)], dtype)
    around = np.concatenate([np.nextafter(powers, np.array(0, dtype)), powers])
    tiny = np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny, np.finfo(dtype).max], dtype)
    assert_counted(np.concatenate([around, -around, tiny, -tiny]))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_integers_and_booleans(dtype):
    if dtype == "?":
        assert_counted(np.arange(1000) % 3 == 0)
        return
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    x = rng.integers(limits.min, limits.max, 5000, dtype, endpoint=True)
    x[:4] = limits.min, limits.max, 0, 1
    assert_counted(x)


def test_adding_up_is_merging():
    x = np.random.default_rng(2).standard_normal((300, 70)).astype(np.float32)
    parts = np.array_split(x, [17, 90, 91])
    assert sum(map(count_by_size, parts)).tolist() == count_by_size(x).tolist()


def test_memory_order_and_alignment_do_not_matter():
    x = np.random.default_rng(3).standard_normal((20, 30)).astype(np.float32)
    for view in (x.T, x[::2, ::-1]):
        assert_counted(view)
    odd = np.frombuffer(b"-" + x.tobytes(), np.float32, offset=1)
    assert count_by_size(odd).tolist() == count_by_size(x).tolist()


def test_text_and_complex_values_have_none():
    for array in (np.array(["a"]), np.zeros(3, np.complex64)):
        with pytest.raises(TypeError, match="histogram"):
            count_by_size(array)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1"])
def test_a_fine_histogram_has_eight_buckets_for_each_power_of_two(dtype):
    rng = np.random.default_rng(3)
    x = (rng.choice([-1, 1], 9999) * 2.0 ** rng.uniform(-20, 15, 9999)).astype(dtype)
    if x.dtype.kind == "f":
        x[:6] = np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).max
    counts = count_by_size(x, fine=True)
    assert counts.shape == (FINE_BUCKETS,)
    found = counts.tolist()
    assert [found[0], found[-2], found[-1]] == [np.sum(x == -np.inf), np.sum(x == np.inf), np.isnan(x).sum()]
    wide = np.abs(x[np.isfinite(x)].astype(np.float64))
    negative = np.asarray(x[np.isfinite(x)] < 0)
    bounds = sizes(fine=True)
    bounds = np.append(np.append(0, bounds[:-1]), np.inf)
    positive = np.histogram(wide[~negative & (wide > 0)], bounds)[0]
    below = np.histogram(wide[negative], bounds)[0]
    # What is smaller than the first bound is in the first bucket.
    positive[1], below[1] = positive[:2].sum(), below[:2].sum()
    assert found[1026:-2] == positive[1:].tolist()
    assert found[1:1025] == below[:0:-1].tolist()
    assert found[1025] == np.sum(x == 0)


def test_a_fine_histogram_adds_up_to_the_other_one():
    x = np.random.default_rng(4).standard_normal(5000).astype(np.float32)
    coarse, fine = count_by_size(x), count_by_size(x, fine=True)
    assert fine[1:1025].reshape(128, 8).sum(1).tolist() == coarse[1:129].tolist()
    assert fine[1026:2050].reshape(128, 8).sum(1).tolist() == coarse[130:258].tolist()
