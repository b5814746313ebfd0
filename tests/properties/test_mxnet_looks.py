"""What is looked at of any array of MXNet is what NumPy finds in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import facts_by_numpy as oracle
from properties.strategies import KINDS, shapes, values

pytest.importorskip("mxnet")

from mxnet import nd
from mxnet.gluon.loss import KLDivLoss, SigmoidBinaryCrossEntropyLoss, SoftmaxCrossEntropyLoss

from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.weight_changes import Moved, changes, part_of
from smd_agent.mxnet.arrays import to_array
from smd_agent.mxnet.fact_adapters import digest_of
from smd_agent.mxnet.loss_inputs import _look as look_at_loss
from smd_agent.mxnet.model_inputs import _numbers as numbers_of_inputs

FLOATS = ("float16", "float32", "float64")
DTYPES = (*FLOATS, "uint8", "int8", "int32", "int64")


@st.composite
def arrays(draw, dtypes=DTYPES, most=70_000, **dims):
    """Arrays of MXNet's dtypes, which have an axis at least and an element."""
    shape, dtype = draw(shapes(most, max(dims.pop("fewest_dims", 1), 1), **dims)), draw(st.sampled_from(dtypes))
    shape = tuple(max(size, 1) for size in shape)
    kind, seed = draw(st.sampled_from(KINDS)), draw(st.integers(0, 1000))
    return values(kind, math.prod(shape), dtype, seed).reshape(shape)


def made(array):
    return nd.array(array, dtype=array.dtype)


@given(arrays())
def test_the_array_of_any_array(array):
    there = made(array)
    found, note = to_array(there)
    assert (found.dtype, note) == (array.dtype, None)
    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(there.asnumpy(), array)


@given(
    arrays(dtypes=("float32", "float64"), most=2000, fewest_dims=2, most_dims=2), st.sampled_from(["csr", "row_sparse"])
)
def test_the_array_of_any_sparse_array(array, kind):
    array = np.nan_to_num(array)
    there = nd.array(array, dtype=array.dtype).tostype(kind)
    np.testing.assert_array_equal(to_array(there)[0], array)
    assert digest_of([there]) is None or digest_of([there]).shape == (1,)
    assert dict(numbers_of_inputs([there], 4)) == {}


@given(st.lists(arrays(), min_size=1, max_size=5))
def test_the_numbers_of_any_inputs(given):
    found = dict(numbers_of_inputs([made(array) for array in given], 4))
    for i, array in enumerate(given[:4]):
        if array.dtype.kind in "fiu" and array.size > 1:
            oracle.check_input(found.pop(i), array if array.dtype.kind == "f" else array.astype(np.float64))
    assert not found


@given(st.lists(arrays(), min_size=1, max_size=3), st.integers(0, 1000))
def test_the_digest_of_any_inputs(given, seed):
    found = digest_of([made(array) for array in given])
    assert found.shape == (1,)
    assert digest_of([made(array) for array in given])[0] == found[0]
    last = given[-1].copy().reshape(-1)
    place = oracle.place_looked_at(last.size, seed)
    before = last[place]
    last.view(np.uint8)[place * last.itemsize] ^= 1
    if last[place] == last[place] and before == before:
        changed = [*given[:-1], last.reshape(given[-1].shape)]
        assert digest_of([made(array) for array in changed])[0] != found[0]


@given(arrays(dtypes=FLOATS))
def test_how_far_any_parameter_moves(array):
    before = part_of(to_array(made(array))[0])
    with np.errstate(all="ignore"):
        after = before * before.dtype.type(1.5)
        ((_, move, ratio),) = changes([Moved(["x"], array.size, before, after)])
        oracle.check_change(before, after, array.size, float(np.float32(move)), float(ratio))


LOSSES = [SoftmaxCrossEntropyLoss(), SoftmaxCrossEntropyLoss(sparse_label=False), SoftmaxCrossEntropyLoss(axis=1)]
LOSSES += [SigmoidBinaryCrossEntropyLoss(), KLDivLoss(), KLDivLoss(from_logits=False)]


@given(arrays(dtypes=FLOATS, most=5000, fewest_dims=2), arrays(most=5000), st.sampled_from(LOSSES), st.booleans())
def test_a_loss_may_be_given_anything(pred, label, block, alike):
    with np.errstate(invalid="ignore"):
        label = pred.round() if alike else label
    found, guess = look_at_loss(block, made(pred), made(label), None)
    if guess is not None:
        guess(LossGuesses(np), "loss")
    assert {"expects_logits", "input_min", "input_max"} <= {*found}
