"""Facts of any array, as NumPy finds them: of inputs, losses, labels, digests and updates."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import facts_by_numpy as oracle
from properties.strategies import FLOATS, INTEGERS, LAYOUTS, NUMBERS, recipes, sizes, unchanged

from smd_agent.framework import input_digests, loss_facts
from smd_agent.framework import training_facts as facts
from smd_agent.framework.model_inputs import numbers_of, sample
from smd_agent.framework.weight_changes import Moved, changes, part_of


@given(sizes(2_000_000), st.sampled_from([64, 16_384, 65_536]))
def test_what_is_looked_at_of_any_size(size, most):
    flat = np.arange(size)
    np.testing.assert_array_equal(facts.sample(flat, most), oracle.runs_of(flat, most))


# No framework gives any in the byte order of another machine.
NATIVE = tuple(layout for layout in LAYOUTS if layout != "byte order")


@given(recipes(FLOATS, layouts=NATIVE))
def test_numbers_of_any_input(recipe):
    array = recipe.make()
    if array.size < 2:
        return
    before = unchanged(array)
    oracle.check_input(numbers_of(sample(array)), array)
    assert unchanged(array) == before


@given(recipes(NUMBERS), recipes(NUMBERS, most=100))
def test_digests_of_any_arrays(recipe, other):
    arrays = [recipe.make(), other.make()]
    before = [unchanged(array) for array in arrays]

    def digest(*given):
        parts = [(input_digests.words_of(facts.sample(one.reshape(-1))), str(one.dtype), one.shape) for one in given]
        return int(input_digests.digest(parts, np)[0])

    found = digest(*arrays)
    assert found == digest(*(np.array(array, order="C") for array in arrays))
    assert [unchanged(array) for array in arrays] == before
    changed = np.array(arrays[0], order="C").reshape(-1)
    if changed.size:
        place = oracle.place_looked_at(changed.size, recipe.seed)
        changed.view(np.uint8)[place * changed.itemsize] ^= 1
        assert found != digest(changed.reshape(arrays[0].shape), arrays[1])


@given(recipes(FLOATS, layouts=NATIVE), st.sampled_from(["normal", "huge", "tiny", "zeros", "bits", "constant"]))
def test_updates_of_any_parameter(recipe, kind):
    array = recipe.make()
    if not array.size:
        return
    before = part_of(array)
    assert before.dtype in (np.float32, np.float64)
    with np.errstate(all="ignore"):
        gone = recipe._replace(shape=before.shape, kind=kind, layout="plain", dtype="float32").make()
        after = (before + gone).astype(before.dtype)
    ((_, move, ratio),) = changes([Moved(["x"], array.size, before, after)])
    oracle.check_change(before, after, array.size, float(np.float32(np.clip(move, 0, 3.4e38))), float(ratio))


def rows_looked_at(array, axis):
    """Of the input of a loss: every so many places of an image or a text, and the first rows."""
    array = np.moveaxis(array, axis, -1)
    for other in range(1, array.ndim - 1):
        array = array.take(range(0, array.shape[other], max(-(-array.shape[other] // 16), 1)), other)
    rows = max(8, 65_536 * array.shape[0] // max(array.size, 1)) if array.ndim > 1 else None
    return array[:rows] if array.ndim > 1 else array


@given(recipes(FLOATS, fewest_dims=1, kinds=("normal", "unit", "zeros", "some nan", "inf", "huge")), st.data())
def test_facts_of_any_input_of_a_loss(recipe, data):
    array = recipe.make()
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    logarithms = data.draw(st.booleans())
    found = loss_facts.rows(array, axis, logarithms)
    part = rows_looked_at(array, axis)
    assert found["classes"] == array.shape[axis]
    if not part.size:
        assert found == {"classes": array.shape[axis]}
        return
    with np.errstate(all="ignore"):
        narrow = part.astype(np.float32)
        check_ends(found, narrow)
        error = np.abs(narrow.astype(np.longdouble).sum(-1) - 1).max()
        terms = float(np.abs(narrow).max()) * part.shape[-1]
    if np.isfinite(narrow).all() and terms < 1e30:
        assert abs(found["row_sum_error"] - float(error)) <= 1e-5 * (terms + 1)
        assert ("log_sum_error" in found) is logarithms
        if logarithms:
            top = narrow.max(-1, keepdims=True).astype(np.longdouble)
            sums = np.log(np.exp(narrow - top).sum(-1, keepdims=True)) + top
            assert abs(found["log_sum_error"] - float(np.abs(sums).max())) <= 1e-4 * (terms + 1)


def check_ends(found, array):
    # Of zeros of both signs either may be the least.
    np.testing.assert_array_equal([found["input_min"], found["input_max"]], [array.min(), array.max()])


@given(recipes(FLOATS))
def test_ends_of_any_input_of_a_loss(recipe):
    array = recipe.make()
    found = loss_facts.ends(array)
    flat = array.reshape(-1)[:65_536]
    if not flat.size:
        assert found == {}
        return
    assert found.keys() == {"input_min", "input_max"}
    check_ends(found, flat)


@given(recipes((*INTEGERS, *FLOATS), kinds=("normal", "integral", "zeros", "some nan", "inf", "both inf")), st.data())
def test_facts_of_any_labels(recipe, data):
    array = recipe.make()
    ignored = data.draw(st.none() | st.integers(-100, 100))
    weights = data.draw(st.none() | st.just(np.random.default_rng(recipe.seed).random(array.shape) < 0.7))
    counted = loss_facts.counted(array, weights, ignored)
    flat = array.reshape(-1)[:65_536]
    if not flat.size:
        assert counted is None
        return
    found = counted.facts(None)
    counts = [
        float(label)
        for place, label in enumerate(flat.tolist())
        if math.isfinite(label) and label != ignored and (weights is None or weights.reshape(-1)[place])
    ]
    assert found["labels"] == len(counts)
    assert found["ignored"] == 1 - len(counts) / flat.size
    if counts:
        ends = float(found["label_min"]), float(found["label_max"])
        assert ends == (min(math.floor(min(counts)), 2**63), min(math.floor(max(counts)), 2**63))
    else:
        assert found["label_min"] > found["label_max"]


@given(recipes((*INTEGERS, *FLOATS, "bool"), fewest_dims=1), st.booleans(), st.data())
def test_classes_of_any_rows(recipe, one_hot, data):
    array = recipe.make()
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    if one_hot and array.shape[axis]:
        chosen = np.random.default_rng(recipe.seed).integers(
            0, array.shape[axis], np.moveaxis(array, axis, -1).shape[:-1]
        )
        array = np.moveaxis((chosen[..., None] == np.arange(array.shape[axis])).astype(array.dtype), -1, axis)
    found = loss_facts.classes_of_one_hot(array, axis)
    rows = np.moveaxis(array, axis, -1)
    rows = rows.reshape(-1, rows.shape[-1]) if rows.size else rows.reshape(0, max(rows.shape[-1], 1))
    rows = rows[: max(8, 65_536 // rows.shape[1])]
    is_one_hot = rows.size > 0 and all(
        sorted(row)[-1:] == [1] and sum(row) == 1 and set(row) <= {0, 1} for row in rows.tolist()
    )
    assert (found is not None) == is_one_hot
    if found is not None:
        assert found.tolist() == [row.index(1) for row in rows.tolist()]
