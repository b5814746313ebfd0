"""What is looked at of any tensor of TensorFlow is what NumPy finds in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import facts_by_numpy as oracle
from properties.strategies import COMPLEX, FLOATS, KINDS, REAL, shapes, values

tf = pytest.importorskip("tensorflow")

from smd_agent.framework import training_facts as facts
from smd_agent.framework.keras.loss_inputs import CrossEntropy
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.weight_changes import Moved
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.fact_adapters import Look, picked
from smd_agent.tensorflow.loss_calls import given as given_to

SMALL = [name for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2") if hasattr(tf, name) or name == "bfloat16"]
DTYPES = (*REAL, *COMPLEX, *SMALL)
LOOK = Look()


@st.composite
def arrays(draw, dtypes=DTYPES, most=70_000):
    """Arrays of TensorFlow's dtypes."""
    shape, dtype = draw(shapes(most)), draw(st.sampled_from(dtypes))
    kind, seed = draw(st.sampled_from(KINDS)), draw(st.integers(0, 1000))
    with np.errstate(all="ignore"):
        found = values(kind, math.prod(shape), "float32" if dtype in SMALL else dtype, seed).reshape(shape)
        return found.astype(tf.as_dtype(dtype).as_numpy_dtype)


def wide(array):
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def tensors_of(array):
    """The tensor and the variable of an array."""
    yield tf.constant(array)
    yield tf.Variable(array)


@given(arrays())
def test_the_array_of_any_tensor(array):
    for tensor in tensors_of(array):
        found, note = to_array(tensor)
        np.testing.assert_array_equal(found, wide(array))
        assert (note or found.dtype.name) == array.dtype.name
        assert tensor.numpy().tobytes() == array.tobytes()


@given(st.lists(arrays(), min_size=1, max_size=5))
def test_the_numbers_of_any_inputs(given):
    found = dict(LOOK.numbers_of([tf.constant(array) for array in given], 4))
    for i, array in enumerate(given[:4]):
        # Those of a sparse array are followed by its values and its shape.
        are_places = [one.shape for one in given[i + 1 : i + 3]] == [(size,) for size in array.shape]
        is_whole = array.dtype.kind in "iu" and array.ndim > 1 and not are_places
        if (array.dtype.kind in "fV" or is_whole) and array.size > 1:
            oracle.check_input(found.pop(i), array.astype(np.float64) if is_whole else wide(array))
    assert not found


@given(st.lists(arrays(), min_size=1, max_size=3))
def test_the_digest_of_any_inputs(given):
    found = LOOK.digest_of([tf.constant(array) for array in given])
    assert LOOK.digest_of([tf.Variable(array) for array in given])[0] == found[0]
    last = wide(given[-1]).copy().reshape(-1)
    if last.size and last.dtype == given[-1].dtype:
        place = oracle.place_looked_at(last.size, last.size)
        last.view(np.uint8)[place * last.itemsize] ^= 1
        changed = [*given[:-1], last.reshape(given[-1].shape)]
        assert LOOK.digest_of([tf.constant(array) for array in changed])[0] != found[0]


@given(arrays(dtypes=(*FLOATS, *SMALL)))
def test_how_far_any_variable_moves(array):
    variable = tf.Variable(array)
    before = LOOK.sample(variable)
    if not array.size:
        return
    assert LOOK.size_of(variable) == array.size
    with np.errstate(all="ignore"):
        after = before * before.dtype.type(1.5)
        ((_, move, ratio),) = LOOK.changes([Moved(["x"], array.size, before, after)])
        oracle.check_change(before, after, array.size, float(np.float32(move)), float(ratio))


@given(arrays(dtypes=("float32", "int64", "complex64")))
def test_what_is_picked_where_a_tensor_is(array):
    if array.size > facts.LOOKED_AT:
        found = picked(tf.constant(array), array.size).numpy()
        np.testing.assert_array_equal(found, facts.sample(array.reshape(-1)))


@given(
    arrays(dtypes=DTYPES, most=5000),
    arrays(most=5000),
    st.sampled_from(["binary", "categorical", "sparse_categorical"]),
)
def test_a_loss_may_be_given_anything(predictions, labels, function):
    kind = CrossEntropy("Loss", f"{function}_crossentropy", False)
    values = given_to(tf.constant(predictions), tf.constant(labels), tf.constant(0.5))
    told = {"classes": predictions.shape[-1]} if predictions.ndim and function != "binary" else {}
    found = kind.look(told, values)
    if predictions.dtype.kind in "fV" and predictions.ndim and predictions.size:
        assert {"input_min", "input_max"} <= {*found.numbers}
    if found.guess is not None:
        assert found.numbers["loss"] == 0.5
        found.guess(LossGuesses(np), "loss")


ODD = {
    "no text": lambda: tf.constant([], tf.string),
    "empty text": lambda: tf.constant(["", ""]),
    "text": lambda: tf.constant([["a", "grün"], ["\udc80".encode("utf-8", "surrogatepass"), b"\xff\x00"]]),
    "one text": lambda: tf.constant("a"),
    "quantised": lambda: tf.quantization.quantize(tf.constant([0.1, 0.5]), 0.0, 1.0, tf.qint8).output,
    "variant": lambda: tf.data.experimental.to_variant(tf.data.Dataset.range(3)),
    "resource": lambda: tf.Variable(1.0).handle,
    "whole numbers of 4 bits": lambda: tf.cast(tf.constant([1, 2, 3]), tf.as_dtype("int4")),
    "nothing": lambda: tf.zeros((0, 3)),
}


@pytest.mark.parametrize("name", ODD)
def test_tensors_of_odd_kinds(name):
    tensor = ODD[name]()
    found = to_array(tensor)
    assert (found is None) == (name in ("variant", "resource"))
    digest = LOOK.digest_of([tensor])
    assert (digest is None) == (found is None)
    assert dict(LOOK.numbers_of([tensor], 4)) == {}


def test_composites():
    sparse = tf.sparse.from_dense([[1.0, 0], [0, 2]])
    ragged = tf.ragged.constant([[1.0, 2], [3.0]])
    for composite in (sparse, ragged):
        parts = tf.nest.flatten(composite, expand_composites=True)
        assert LOOK.digest_of(parts) is not None
        assert len(dict(LOOK.numbers_of(parts, 4))) == 1
        assert to_array(composite) is None or to_array(composite)[0].dtype.kind in "fiuU"
    rows = tf.IndexedSlices(tf.ones((3, 2)), tf.constant([0, 2, 0]), tf.constant([4, 2]))
    assert to_array(rows)[0].tolist() == [[2, 2], [0, 0], [1, 1], [0, 0]]
