"""Shares of dead and of saturated channels, against a loop over the channels that goes by their definition."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.reductions import channel_shares

pytestmark = pytest.mark.usefixtures("implementation")

NAMES = ("dead_share", "saturated_share")
END = 1 / 1024


def reference(array, axis):
    """The two shares, channel by channel."""
    x = array if array.dtype.kind == "c" else array.astype(np.float64)
    channels = [x.take(i, axis).reshape(-1) for i in range(x.shape[axis])]
    dead = sum(all(value == 0 for value in channel.tolist()) for channel in channels)
    saturated = 0
    if array.dtype.kind == "f" and not np.any(np.abs(x) > 1):
        is_sigmoid = not np.any(x < 0) and bool(np.any(x >= 1 - END))
        for channel in channels:
            values = channel.tolist()
            held = sum(abs(v) >= 1 - END or (is_sigmoid and 0 < v <= END) for v in values)
            saturated += 100 * (len(values) - held) <= len(values)
    return [dead / len(channels), saturated / len(channels)]


def assert_agrees(array, axis):
    want = reference(array, axis)
    assert channel_shares(array, axis, NAMES).tolist() == want, (array.shape, axis, array.dtype)
    assert channel_shares(array, axis - array.ndim, NAMES[::-1]).tolist() == want[::-1]
    assert [channel_shares(array, axis, [name])[0] for name in NAMES] == want
    return want


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


SHAPES = [
    *(((5, 7), 1), ((300, 7), 1), ((4, 6, 9), 1), ((4, 9, 6), 2), ((3, 8, 12, 11), 1), ((1, 6, 40, 40), 1)),
    *(((40, 5, 1, 1), 1), ((2, 30, 30, 5), 3), ((8, 200, 3), 0), ((1, 1), 1), ((200, 1), 1), ((3, 1, 500), 1)),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape, axis", SHAPES, ids=str)
def test_shares_are_those_of_a_loop_over_channels(shape, axis, dtype):
    rng = np.random.default_rng(0)
    seen = set()
    for trial in range(12):
        x = rng.standard_normal(shape) * 2
        chosen = rng.random(shape[axis]) < (0.0, 0.3, 0.7, 1.0)[trial % 4]
        places = [slice(None)] * len(shape)
        places[axis] = chosen
        kind = ("relu", "tanh", "sigmoid")[trial % 3]
        if kind == "relu":
            x = np.maximum(x, 0)
            x[tuple(places)] = 0
        else:
            x[tuple(places)] = rng.choice([-40.0, 40.0], x[tuple(places)].shape)
            x = np.tanh(x) if kind == "tanh" else np.maximum(sigmoid(x), 1e-7)
        seen.add(tuple(assert_agrees(x.astype(dtype), axis)))
    assert len(seen) > 2


def test_one_element_in_a_hundred_may_be_elsewhere():
    for elsewhere, want in ((0, 1), (1, 1), (2, 1), (3, 0)):
        x = np.ones((200, 2), np.float32)
        x[::7] *= -1
        x[100 : 100 + elsewhere, :] = 0.2
        assert assert_agrees(x, 1)[1] == want
        # Where they stand makes no difference.
        assert assert_agrees(x[::-1], 1)[1] == want
        assert assert_agrees(np.ascontiguousarray(x.T).reshape(1, 2, 200), 1)[1] == want


def test_a_dead_channel_has_no_other_element_however_late():
    for x in (np.zeros((64, 6, 50), np.float32), np.zeros((64, 50, 6), np.float32)):
        axis = x.shape.index(6)
        assert assert_agrees(x, axis) == [1, 0]
        x[(-1, 2, -1) if axis == 1 else (-1, -1, 2)] = -1e-30
        x.reshape(-1)[0] = np.nan
        assert assert_agrees(x, axis) == [pytest.approx(4 / 6), 0]
    assert assert_agrees(-np.zeros((3, 4)), 1) == [1, 0]


def test_nothing_is_saturated_where_the_range_is_another_one():
    rng = np.random.default_rng(1)
    linear = rng.standard_normal((64, 32)).astype(np.float32)
    small = np.full((64, 32), 1e-4, np.float32)
    for x in (linear, linear * 1e-3, small, np.abs(linear) % 0.9, np.maximum(linear, 0) % 1, np.clip(linear, 0, 6) * 9):
        assert assert_agrees(x, 1)[1] == 0
    held = np.ones((64, 32), np.float32)
    assert assert_agrees(held, 1)[1] == 1
    for beyond in (1.001, -1.5, np.inf, -np.inf):
        held[-1, -1] = beyond
        assert assert_agrees(held, 1)[1] == 0
    held[-1, -1] = np.nan
    assert assert_agrees(held, 1)[1] == 31 / 32


def test_near_zero_is_an_end_only_where_the_output_looks_like_a_sigmoid():
    x = np.full((10, 4), 1e-5)
    assert assert_agrees(x, 1) == [0, 0]
    x[0, 0] = 0.9995
    assert assert_agrees(x, 1) == [0, 1]
    x[:, 1] = 0
    assert assert_agrees(x, 1) == [0.25, 0.75]
    x[5, 2] = -0.1
    assert assert_agrees(x, 1) == [0.25, 0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.complex64])
def test_values_that_are_no_floats_may_be_dead_and_are_never_saturated(dtype):
    x = np.ones((6, 4), dtype)
    x[:, 3] = 0
    assert assert_agrees(x, 1) == [0.25, 0]


def test_memory_in_any_order():
    x = np.tanh(np.random.default_rng(2).standard_normal((9, 8, 10, 11)) * 3).astype(np.float32)
    x[:, 2] = 0
    x[:, 5] = -1
    for view in (x.transpose(0, 2, 3, 1), x[::2], x[..., ::-1], np.asfortranarray(x), x.astype(">f4")):
        assert_agrees(view, view.shape.index(8))
