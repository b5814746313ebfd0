"""Reductions against plain float64 NumPy over the whole array."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from smd_agent.core.reduction_config import CHANNEL_SHARES, COUNTS, OPS
from smd_agent.core.reductions import reduce_batch, reduce_one, reduce_rows, reducible
from smd_agent.core.reductions.with_numpy import PIECE, RUN, SMALL

pytestmark = pytest.mark.usefixtures("implementation")

ALL_OPS = [
    (name, absolute)
    for absolute in (False, True)
    for name in OPS
    if name not in CHANNEL_SHARES and not (absolute and name in COUNTS)
]
SIZES = (1, 2, 7, RUN, SMALL, SMALL + 1, PIECE, PIECE + 1, 3 * PIECE + 17)


def reference(array, name, absolute):
    x = array.ravel()
    x = (np.abs(x) if x.dtype.kind == "c" else x.astype(np.float64)).astype(np.float64)
    x = np.abs(x) if absolute else x
    with np.errstate(all="ignore"):
        return {
            "min": np.min,
            "max": np.max,
            "mean": np.mean,
            "median": np.median,
            "p5": lambda v: np.percentile(v, 5),
            "p50": lambda v: np.percentile(v, 50),
            "p95": lambda v: np.percentile(v, 95),
            "zero_share": lambda v: np.mean(v == 0),
            "nan_count": lambda v: np.isnan(v).sum(),
            "inf_count": lambda v: np.isinf(v).sum(),
            "std": np.std,
            "variance": np.var,
            "sum": np.sum,
            "prod": np.prod,
            "l1": lambda v: np.sum(np.abs(v)),
            "l2": lambda v: np.sqrt(np.sum(v * v)),
        }[name](x)


def assert_close(array, ops=ALL_OPS, tolerance=1e-6):
    got = reduce_batch([array], ops)[0]
    terms = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    for value, (name, absolute) in zip(got, ops, strict=True):
        want = reference(array, name, absolute)
        with np.errstate(all="ignore"):
            scale = {"sum": terms.sum(), "mean": terms.mean()}.get(name, abs(want))
        if not np.isfinite(want) or (name == "prod" and abs(want) < 1e-250):
            np.testing.assert_allclose(value, want, atol=1e-250, err_msg=name)
        else:
            assert abs(value - want) <= tolerance * max(scale, 1e-300), (name, absolute, value, want)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_of_every_size_agree_with_float64(size, dtype):
    rng = np.random.default_rng(size)
    assert_close(rng.standard_normal(size).astype(dtype))
    assert_close((3 + rng.standard_normal(size)).astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("size", [5, 20_000])
def test_integers_and_booleans(dtype, size):
    assert_close(np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, size).astype(dtype))


def test_small_tensors_are_exact_to_float64():
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(n).astype(np.float32) for n in (1, 3, 100, SMALL)]
    ops = [(name, absolute) for name, absolute in ALL_OPS if name != "prod"]
    for array, row in zip(arrays, reduce_batch(arrays, ops), strict=True):
        np.testing.assert_allclose(row, [reference(array, *op) for op in ops], rtol=1e-12)


@pytest.mark.parametrize("size", [1000, PIECE + 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 500, -1])
def test_nan_and_inf_propagate(size, bad, place):
    x = np.random.default_rng(2).standard_normal(size).astype(np.float32)
    x[place] = bad
    for name, absolute in ALL_OPS:
        # A product may underflow to 0 before or after it meets an Inf.
        if name != "prod":
            got, want = reduce_one(x, name, absolute), reference(x, name, absolute)
            assert np.isnan(got) == np.isnan(want), (name, absolute)
    if np.isnan(bad):
        assert all(np.isnan(reduce_one(x, *op)) for op in ALL_OPS if op[0] not in COUNTS)
    else:
        assert reduce_one(x, "l2") == np.inf
        assert reduce_one(x, "max" if bad > 0 else "min") == bad


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-10, 1e10, 1e22, 1e30])
def test_values_whose_squares_leave_float32_keep_their_norm(size):
    x = (np.random.default_rng(3).standard_normal(3 * SMALL) * size).astype(np.float32)
    assert_close(x, [("l2", False), ("std", False), ("variance", False), ("l1", False), ("max", True)])
    assert reduce_one(x, "l2") > 0


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e-3])
def test_variance_of_nearly_constant_values_does_not_cancel(spread):
    x = (1 + spread * np.random.default_rng(4).standard_normal(2 * PIECE + 5)).astype(np.float32)
    assert_close(x, [("std", False), ("variance", False), ("std", True)], 1e-5)


def test_memory_order_does_not_matter():
    x = np.random.default_rng(5).standard_normal((70, 90, 11)).astype(np.float32)
    for view in (x.transpose(2, 0, 1), np.asfortranarray(x), x[::2, :, ::-1], x[:, 3:40]):
        assert_close(view, [("sum", False), ("l2", False), ("min", True), ("std", False)])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "i1", "u2", "i8", "?", "c8"])
@pytest.mark.parametrize("size", [3, 20_000])
def test_elements_that_do_not_lie_next_to_each_other(dtype, size):
    x = (5 * np.random.default_rng(6).standard_normal((size, 4))).astype(dtype)
    ops = [op for op in ALL_OPS if reducible(x.dtype, (op,))]
    one = np.broadcast_to(np.ones(1, dtype), size)
    for view in (x[:, 1], x[::-1, 2], x[::-1, ::-1], x[:, ::2], x.reshape(-1)[::3], one, x.T[::-1], x[:, :1].T):
        assert_close(view, ops, 1e-5)


def test_norms_are_over_the_elements_also_of_matrices():
    matrix = np.array([[1.0, -2.0], [3.0, 4.0]])
    assert reduce_one(matrix, "l1") == 10
    assert reduce_one(matrix, "l2") == pytest.approx(30**0.5)
    assert reduce_one(matrix, "std") == pytest.approx(5.25**0.5)


def test_batch_equals_one_by_one():
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal(n).astype(t) for n, t in itertools.product((1, 50, 9000), ("f2", "f4", "f8", "i4"))]
    batch = reduce_batch(arrays, ALL_OPS)
    single = np.array([[reduce_one(array, *op) for op in ALL_OPS] for array in arrays])
    np.testing.assert_allclose(batch, single, rtol=1e-12)


def test_complex_values_have_norms_and_abs_ops_only():
    z = np.random.default_rng(7).standard_normal(40) + 1j
    assert_close(z, [("l2", False), ("l1", False), ("max", True), ("mean", True)])
    assert reducible(z.dtype, [("l2", False), ("max", True)])
    assert not reducible(z.dtype, [("max", False)])
    with pytest.raises(TypeError, match="complex128"):
        reduce_one(z, "mean")


def test_sizes_of_complex_values_are_those_of_float64():
    x = np.array([3e38 + 3e38j, 3 - 4j, 0.12573022 + 0.64042264j], np.complex64)
    sizes = np.abs(x.astype(np.complex128))
    assert reduce_one(x, "max", absolute=True) == sizes.max()
    assert reduce_one(x, "min", absolute=True) == sizes.min()
    assert reduce_one(x, "inf_count") == 0


def test_text_has_no_reductions():
    with pytest.raises(TypeError, match="<U1"):
        reduce_one(np.array(["a"]), "mean")


def test_empty_tensor():
    empty = np.zeros((0, 3), np.float32)
    assert reduce_one(empty, "sum") == reduce_one(empty, "l2") == 0
    assert reduce_one(empty, "prod") == 1
    assert all(np.isnan(reduce_one(empty, name)) for name in ("min", "max", "mean", "median", "std"))


def test_the_users_error_state_is_left_alone():
    with np.errstate(all="raise"):
        assert reduce_one(np.array([np.inf, -np.inf], np.float32), "std") != 0
        assert np.geterr()["over"] == "raise"


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u2", "i8", "?"])
def test_rows_of_a_matrix_are_reduced_as_arrays_are(dtype):
    matrix = np.random.default_rng(0).normal(0, 50, (7, 33)).astype(dtype)
    if matrix.dtype.kind == "f":
        matrix[3, 4], matrix[5, 6] = np.nan, np.inf
    for ops in (ALL_OPS, *([op] for op in ALL_OPS)):
        np.testing.assert_array_equal(reduce_rows(matrix, ops), reduce_batch([*matrix], ops))


def test_rows_have_no_other_reductions():
    with pytest.raises(TypeError, match="no reduction called 'mode'"):
        reduce_rows(np.ones((2, 2)), [("mode", False)])
