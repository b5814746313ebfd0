"""Reductions of any array are those of NumPy in extended precision over the whole array."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.strategies import COMPLEX, NUMBERS, REAL, recipes, unchanged

from smd_agent.core.reduction_config import CHANNEL_SHARES, COUNTS, OPS
from smd_agent.core.reductions import (
    BOUND,
    SPREAD_BOUND,
    channel_shares,
    count_by_size,
    mixed_sum,
    reduce_batch,
    reduce_rows,
    reducible,
)
from smd_agent.core.reductions.channels import END
from smd_agent.core.reductions.histogram import BUCKETS, FINE_BUCKETS, sizes

pytestmark = pytest.mark.usefixtures("implementation")

EVERY = [
    (name, absolute)
    for absolute in (False, True)
    for name in OPS
    if name not in CHANNEL_SHARES and not (absolute and name in COUNTS)
]
EXACT = {"min", "max", "median", "p5", "p50", "p95", *COUNTS}
SHARES = {"median": 0.5, "p50": 0.5, "p5": 0.05, "p95": 0.95}
LARGEST = np.finfo(np.float64).max
# Squares of smaller numbers are below the smallest normal number of float64.
LEAST_SQUARED = 1e-150


def flat_of(array):
    """All elements in float64, as the definitions have them."""
    with np.errstate(all="ignore"):
        return (np.abs(array.astype(np.complex128)) if array.dtype.kind == "c" else array.astype(np.float64)).reshape(
            -1
        )


def exact_of(x, name):
    if name in COUNTS:
        found = {"zero_share": x == 0, "nan_count": np.isnan(x), "inf_count": np.isinf(x)}[name]
        return (found.mean() if x.size else math.nan) if name == "zero_share" else float(found.sum())
    if not x.size or np.isnan(x).any():
        return math.nan
    if name in ("min", "max"):
        return getattr(x, name)()
    ordered = np.sort(x)
    rank = SHARES[name] * (x.size - 1)
    first, beyond = int(rank), rank - int(rank)
    a, b = ordered[first], ordered[first + (beyond > 0)]
    return a if a == b else a * (1 - beyond) + b * beyond


def sums_of(x, name):
    """A sum in extended precision, and how far from it one may be."""
    wide = x.astype(np.longdouble)
    terms = np.abs(wide).sum()
    n = np.longdouble(x.size)
    if name in ("sum", "l1"):
        return (wide if name == "sum" else np.abs(wide)).sum(), BOUND * terms
    if name == "mean":
        return (wide.sum() / n if x.size else np.longdouble(np.nan)), BOUND * terms / max(n, 1)
    if name == "l2":
        found = np.sqrt((wide * wide).sum())
        return found, BOUND * found + LEAST_SQUARED * np.sqrt(max(n, 1))
    if not x.size:
        return np.longdouble(np.nan), 0
    variance = np.square(wide - wide.mean()).mean()
    largest = np.abs(wide).max()
    std = np.sqrt(variance)
    if name == "std":
        return std, SPREAD_BOUND * std + 1e-12 * largest + LEAST_SQUARED
    return variance, 2 * SPREAD_BOUND * variance + 1e-24 * largest**2 + 2e-12 * largest * std + LEAST_SQUARED**2


def overflows(x, name):
    """Whether float64 cannot hold what a reduction is computed from."""
    wide = np.abs(x.astype(np.longdouble))
    return wide.sum() > LARGEST or (name in ("l2", "std", "variance") and np.square(wide).sum() > LARGEST)


def check(array, op, found):
    name, absolute = op
    x = flat_of(array)
    x = np.abs(x) if absolute else x
    if name == "prod":
        # In memory order a part of it may overflow, so only what is certain is compared.
        logs = np.log2(np.abs(x)[x != 0]).astype(np.float64) if np.isfinite(x).all() else np.array([np.inf])
        if np.abs(logs).sum() < 1000:
            want = float(np.prod(x))
            assert found == pytest.approx(want, rel=1e-9, abs=0)
        return
    if name in EXACT:
        np.testing.assert_allclose(found, exact_of(x, name), rtol=1e-14 if array.dtype.kind == "c" else 0)
    elif np.isfinite(x).all():
        want, within = sums_of(x, name)
        if overflows(x, name):
            assert not np.isfinite(found) or abs(found - want) <= within
        else:
            np.testing.assert_allclose(float(found), float(want), rtol=1e-15, atol=float(within))
    else:
        with np.errstate(all="ignore"):
            want = {"sum": x.sum, "l1": np.abs(x).sum, "mean": x.mean, "l2": lambda: np.sqrt(np.square(x).sum())}
            want |= {"std": x.std, "variance": x.var}
            np.testing.assert_equal(float(found), float(want[name]()))


@given(st.lists(recipes(NUMBERS), min_size=1, max_size=3), st.lists(st.sampled_from(EVERY), min_size=1, max_size=6))
def test_every_reduction_of_every_array(drawn, ops):
    arrays = [recipe.make() for recipe in drawn]
    ops = [op for op in dict.fromkeys(ops) if all(reducible(array.dtype, (op,)) for array in arrays)]
    before = [unchanged(array) for array in arrays]
    found = reduce_batch(arrays, ops)
    assert found.shape == (len(arrays), len(ops))
    assert found.dtype == np.float64
    with np.errstate(all="ignore"):
        for array, row in zip(arrays, found, strict=True):
            for op, value in zip(ops, row, strict=True):
                check(array, op, value)
    assert [unchanged(array) for array in arrays] == before


@given(recipes(NUMBERS), st.sampled_from(EVERY))
def test_one_alone_is_what_it_is_among_all(recipe, op):
    array = recipe.make()
    if not reducible(array.dtype, (op,)):
        with pytest.raises(TypeError):
            reduce_batch([array], [op])
        return
    ops = [other for other in EVERY if reducible(array.dtype, (other,))]
    together, alone = reduce_batch([array], ops)[0, ops.index(op)], reduce_batch([array], [op])[0, 0]
    if op[0] in EXACT:
        np.testing.assert_array_equal(together, alone)
    else:
        largest = float(np.abs(flat_of(array)).max(initial=0))
        assert together == pytest.approx(alone, rel=1e-6, nan_ok=True, abs=1e-12 * largest)


@given(recipes(REAL, most=20_000, fewest_dims=2, most_dims=2), st.lists(st.sampled_from(EVERY), min_size=1, max_size=4))
def test_rows_are_reduced_as_arrays_are(recipe, ops):
    matrix = recipe.make()
    ops = tuple(dict.fromkeys(ops))
    if not matrix.size or len(matrix) > 100:
        return
    found, wanted = reduce_rows(matrix, ops), reduce_batch([*matrix], ops)
    with np.errstate(all="ignore"):
        scale = np.abs(matrix.astype(np.float64)).max()
        for j, (name, _) in enumerate(ops):
            atol = 0 if name in EXACT else np.nan_to_num(1e-9 * scale, posinf=0)
            np.testing.assert_allclose(found[:, j], wanted[:, j], rtol=1e-6, atol=atol)


def buckets_one_by_one(x, fine):
    lower = sizes(fine)[:-1]
    half = len(lower)
    found = np.zeros(FINE_BUCKETS if fine else BUCKETS, np.int64)
    found[-1] = np.isnan(x).sum()
    found[0], found[-2] = (x == -np.inf).sum(), (x == np.inf).sum()
    found[half + 1] = (x == 0).sum()
    finite = x[np.isfinite(x) & (x != 0)]
    place = np.maximum(np.searchsorted(lower, np.abs(finite), side="right"), 1)
    np.add.at(found, np.where(finite > 0, half + 1 + place, half + 1 - place), 1)
    return found


@given(recipes(REAL), st.booleans())
def test_every_histogram(recipe, fine):
    array = recipe.make()
    before = unchanged(array)
    found = count_by_size(array, fine)
    np.testing.assert_array_equal(found, buckets_one_by_one(flat_of(array), fine))
    assert found.sum() == array.size
    assert unchanged(array) == before


@given(recipes(COMPLEX, most=50))
def test_complex_numbers_have_no_histogram(recipe):
    with pytest.raises(TypeError):
        count_by_size(recipe.make())


def shares_one_by_one(array, axis):
    channels = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    dead = (channels == 0).all(1)
    if array.dtype.kind != "f" or (np.abs(array) > 1).any():
        return [dead.mean(), 0.0]
    high, low = np.abs(channels) >= 1 - END, (channels > 0) & (channels <= END)
    is_sigmoid = not (channels < 0).any() and (channels >= 1 - END).any()
    elsewhere = channels.shape[1] - (high | low if is_sigmoid else high).sum(1)
    return [dead.mean(), (elsewhere <= channels.shape[1] // 100).mean()]


RANGES = ("zeros", "ones", "unit", "normal", "mostly zero", "alternating", "some nan", "tiny", "bits", "integral")


@given(
    recipes(NUMBERS, most=20_000, fewest_dims=2, kinds=RANGES), st.integers(0, 4), st.sampled_from(RANGES), st.data()
)
def test_every_share_of_channels(recipe, axis, other, data):
    array = recipe.make()
    if not array.size:
        return
    axis %= array.ndim
    if array.dtype.kind == "f" and array.flags.writeable and array.shape[axis] > 1:
        # Channels of two kinds.
        channel = np.moveaxis(array, axis, 0)[data.draw(st.integers(0, array.shape[axis] - 1))]
        channel[...] = recipe._replace(kind=other, shape=channel.shape, layout="plain").make()
    with np.errstate(all="ignore"):
        wanted = shares_one_by_one(array, axis)
    np.testing.assert_array_equal(channel_shares(array, axis, ["dead_share", "saturated_share"]), wanted)
    np.testing.assert_array_equal(channel_shares(array, axis - array.ndim, ["saturated_share"]), wanted[1:])


@given(recipes(("int64",), fewest_dims=1, most_dims=1))
def test_every_sum_of_mixed_words(recipe):
    words = recipe.make()
    mask, total = 2**64 - 1, 0
    for place, word in enumerate(words.tolist(), 1):
        mixed = (word + place) * 0xFF51AFD7ED558CCD & mask
        signed = mixed - 2**64 if mixed >= 2**63 else mixed
        total += (mixed ^ (signed >> 29)) * 0xC4CEB9FE1A85EC53
    assert mixed_sum(words) & mask == total & mask


@pytest.mark.long
def test_more_elements_than_32_bits_count():
    array = np.broadcast_to(np.array([0, 1, 2, 3], np.int8), (2**29 + 2, 4))
    ops = [("min", False), ("max", False), ("mean", False), ("l2", False), ("zero_share", False), ("median", False)]
    size = array.size
    wanted = [0, 3, 1.5, math.sqrt(14 * size / 4), 0.25, 1.5]
    np.testing.assert_allclose(reduce_batch([array], ops)[0], wanted, rtol=1e-9)
    assert count_by_size(array)[129] == size // 4
    shares = channel_shares(array, 1, ["dead_share", "saturated_share"])
    np.testing.assert_array_equal(shares, [0.25, 0])
