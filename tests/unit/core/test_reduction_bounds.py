"""Every reduction of every dtype within its documented bound of a reference that knows nothing of lanes or pieces."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smd_agent.core.reductions import BOUND, SPREAD_BOUND, reduce_batch
from smd_agent.core.reductions.with_numpy import PIECE, SMALL

pytestmark = pytest.mark.usefixtures("implementation")

NAMES = ("min", "max", "mean", "median", "variance", "std", "sum", "prod", "l1", "l2")
COUNTS = ("zero_share", "nan_count", "inf_count")
QUANTILES = {"p5": 5, "p50": 50, "p95": 95}
OPS = (
    *((name, absolute) for absolute in (False, True) for name in (*NAMES, *QUANTILES)),
    *((name, False) for name in COUNTS),
)
FLOATS = ("f2", "f4", "f8")
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
# Around every border: of lanes, of a kernel's block, of what is small, of a piece.
SIZES = (1, 2, 15, 16, 17, 31, 33, 4095, 4097, SMALL - 1, SMALL, SMALL + 1, PIECE - 1, PIECE + 1, 2 * PIECE + 37)


def wide_sum(x):
    """Sum with more digits than float64 has, where the machine has them."""
    return float(np.add.reduce(x.astype(np.longdouble)))


def naive(x, absolute):
    """Each op by name in float64, NaN and Inf as float64 has them."""
    x = np.abs(x) if absolute else x
    total = wide_sum(x)
    mean = total / x.size
    variance = wide_sum((x - mean) ** 2) / x.size
    return {
        ("min", absolute): float(np.min(x)),
        ("max", absolute): float(np.max(x)),
        ("mean", absolute): mean,
        ("median", absolute): float(np.median(x)),
        ("variance", absolute): variance,
        ("std", absolute): math.sqrt(variance),
        ("sum", absolute): total,
        ("prod", absolute): float(np.prod(x)),
        ("l1", absolute): wide_sum(np.abs(x)),
        ("l2", absolute): math.sqrt(wide_sum(x * x)),
        **{(name, absolute): percentile(x, share) for name, share in QUANTILES.items()},
        **{(name, absolute): value for name, value in zip(COUNTS, counted(x), strict=True)},
    }


def percentile(x, share):
    """The element at a share of the way through all in order, or a mixture of the two that are nearest to it."""
    if np.isnan(x).any():
        return math.nan
    whole, rest = divmod(share * (x.size - 1), 100)
    a, b = np.sort(x)[[whole, min(whole + 1, x.size - 1)]].tolist()
    return a if not rest or a == b else a * ((100 - rest) / 100) + b * (rest / 100)


def counted(x):
    """Share of zeros and numbers of NaN and Inf."""
    return (x == 0).sum() / x.size, (x != x).sum(), (np.abs(x) == math.inf).sum()


def allowed(name, want, l1, largest, size):
    """The documented distance from the wanted value, for values of this sum and largest of absolute values."""
    smallest = 5e-324
    if name in ("min", "max", *COUNTS):
        return 0.0
    if name in QUANTILES:
        # Where two elements are mixed, their difference is rounded.
        return 1e-14 * largest + smallest
    if name == "median":
        # The mean of two middle elements is rounded once, here or there.
        return 1e-15 * abs(want)
    if name in ("std", "variance"):
        rounding = 1e-12 * largest
        return SPREAD_BOUND * abs(want) + (rounding if name == "std" else rounding**2) + smallest
    if name == "prod":
        return 1e-9 * abs(want) + smallest
    return BOUND * {"sum": l1, "mean": l1 / size}.get(name, abs(want)) + smallest


def assert_within_bounds(*arrays):
    """Each array by itself, and all at once."""
    with np.errstate(all="ignore"):
        together = reduce_batch(arrays, OPS)
        for array, row in zip(arrays, together, strict=True):
            x = array.ravel().astype(np.float64)
            wanted = naive(x, False) | naive(x, True)
            l1, largest = wanted["l1", False], wanted["max", True]
            for got in (row, reduce_batch([array], OPS)[0]):
                for op, value in zip(OPS, got, strict=True):
                    where = (array.dtype, array.size, op, value, wanted[op])
                    if np.isfinite(wanted[op]):
                        assert abs(value - wanted[op]) <= allowed(op[0], wanted[op], l1, largest, x.size), where
                    else:
                        assert np.array_equal(value, wanted[op], equal_nan=True), where


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["normal", "shifted", "constant", "cancelling", "positive", "zeros", "tiny", "huge"])
def test_floats(dtype, kind):
    rng = np.random.default_rng(1)
    largest = {"f2": 6e4, "f4": 3e38, "f8": 1e150}[dtype]
    smallest = float(np.finfo(dtype).smallest_subnormal)
    made = {
        "normal": lambda n: rng.standard_normal(n),
        "shifted": lambda n: 300 + rng.standard_normal(n),
        "constant": lambda n: np.full(n, 0.1),
        "cancelling": lambda n: np.where(np.arange(n) % 2, 1e4, -1e4) + rng.standard_normal(n),
        "positive": lambda n: rng.random(n) ** 4,
        "zeros": lambda n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
        "tiny": lambda n: smallest * rng.integers(-20, 20, n),
        "huge": lambda n: largest * (2 * rng.random(n) - 1),
    }[kind]
    assert_within_bounds(*(made(n).astype(dtype) for n in SIZES))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_up_to_their_limits(dtype):
    rng = np.random.default_rng(2)
    limits = np.iinfo(dtype)
    arrays = [
        rng.integers(limits.min, limits.max, n, dtype, endpoint=True) for n in (1, 2, 15, 4097, SMALL + 1, 50_000)
    ]
    arrays[-1][:2] = limits.min, limits.max
    assert_within_bounds(*arrays, np.array([limits.min]), np.zeros(20_000, dtype))


def test_booleans():
    rng = np.random.default_rng(3)
    assert_within_bounds(*(rng.random(n) < 0.3 for n in SIZES), np.ones(9000, bool), np.zeros(9000, bool))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "special", [[np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.inf, np.nan], [-np.inf, np.nan]], ids=str
)
def test_nan_and_inf(dtype, special):
    rng = np.random.default_rng(4)
    arrays = []
    for n in (2, 5, 17, 100, SMALL + 3, PIECE + 5):
        for places in ((0, 1), (n // 2, n - 1), (n - 1, 0)):
            # Far from 0, so that no product underflows before it meets what is special.
            x = (1 + rng.random(n) / n).astype(dtype)
            for value, place in zip(special, places, strict=False):
                x[place] = value
            arrays.append(x)
    assert_within_bounds(*arrays)


def test_other_float_types_and_byte_orders():
    x = np.random.default_rng(5).standard_normal(SMALL + 100)
    assert_within_bounds(x.astype(">f4"), x.astype(np.longdouble), x.astype(">f8")[:50])


def test_memory_that_is_not_aligned():
    x = np.frombuffer(b"-" + np.arange(10_000, dtype=np.float32).tobytes(), np.float32, offset=1)
    assert not x.flags.aligned
    assert_within_bounds(x, x[:9])


def test_a_standard_deviation_far_below_the_mean():
    rng = np.random.default_rng(6)
    assert_within_bounds(*(1e6 + 1e-3 * rng.standard_normal(n) for n in (100, 5000, PIECE + 100)))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i2"])
def test_medians_of_all_shapes(dtype):
    rng = np.random.default_rng(7)
    n = 30_000
    shaped = {
        "sorted": np.arange(n),
        "reversed": np.arange(n)[::-1],
        "two values": np.arange(n) % 2,
        "few values": rng.integers(0, 3, n),
        "mostly zero": np.where(rng.random(n) < 0.7, 0, rng.integers(1, 99, n)),
        "rows alike": np.repeat(rng.integers(0, 20_000, n // 100), 100),
        "two heaps": np.concatenate([rng.integers(0, 9, n // 2), rng.integers(20_000, 20_009, n // 2)]),
        # What the first sample sees is all below, and then all above, the middle.
        "misleading": np.where(np.arange(n) % 160 < 16, 0, 5 + np.arange(n) % 7),
    }
    for name, values in shaped.items():
        for size in (n, n - 1):
            x = values[:size].astype(dtype)
            both = reduce_batch([x - 3], [("median", False), ("median", True)])[0]
            assert both.tolist() == [np.median(x - 3.0), np.median(np.abs(x - 3.0))], name
