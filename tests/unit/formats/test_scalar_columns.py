"""Numbers that are read at once are those that are read one by one, and a changed byte is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from harness.written_runs import started

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import DamagedRecord
from smd_agent.storage.run_reader import RunReader

NUMBERS = tuple(f"smdebug/reductions/l2/layer{number}" for number in range(5))
SINGLE = {
    "loss": np.float32(0.25),
    "digest": np.array([2**40 + 1], np.int64),
    "rate": np.float64(1e-3),
    "half": np.float16(1.5),
    "truth": np.array(True),
}
NONE = {"vector": np.arange(3.0), "matrix": np.zeros((1, 2)), "empty": np.zeros(0)}


@pytest.fixture
def written(tmp_path):
    """A run of twelve steps, whose step number gets a digit more, as a reader sees it."""
    run = started(tmp_path / "run")
    for step in range(12):
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        file.add_scalars(NUMBERS, np.arange(len(NUMBERS)) + step / 3)
        file.add_text("text", ["a"])
        for name, value in {**SINGLE, **NONE}.items():
            file.add(name, np.asarray(value))
        run.commit(file)
    run.close(True)
    reader = RunReader(tmp_path / "run")
    return reader, list(reader.new_indexes())


def test_numbers_are_those_of_the_records(written):
    reader, steps = written
    names = (*SINGLE, *NUMBERS)
    for place in steps:
        values, known = reader.column(place, names)
        assert known.all()
        assert values.tolist() == [float(reader.read(place, name).value.reshape(-1)[0]) for name in names]


def test_what_is_no_single_number_is_not_known(written):
    reader, steps = written
    for place in steps:
        values, known = reader.column(place, ("loss", *NONE, "text", NUMBERS[0]))
        assert known.tolist() == [True, False, False, False, False, True]
        assert values[[0, 5]].tolist() == [0.25, place.step / 3]


def test_the_order_is_that_of_the_names(written):
    reader, steps = written
    forward, backward = (reader.column(steps[3], names)[0] for names in (NUMBERS, NUMBERS[::-1]))
    assert forward.tolist() == backward.tolist()[::-1] == [number + 1 for number in range(5)]


def test_every_changed_byte_is_noticed(written):
    reader, steps = written
    place = steps[4]
    path = reader.root / place.index.event_file
    whole = path.read_bytes()
    start, length = place.index.payload.location(NUMBERS[2])
    assert reader.column(place, NUMBERS)[1].all()
    for at in range(start, start + length):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        # What was read last is kept, and no file changes in a run.
        reader.column(steps[5], NUMBERS)
        _, known = reader.column(place, NUMBERS)
        assert known.tolist() == [True, True, False, True, True], at - start


def test_of_a_file_that_was_cut_off_the_rest_is_known(written):
    reader, steps = written
    place = steps[4]
    path = reader.root / place.index.event_file
    start, length = place.index.payload.location(NUMBERS[2])
    path.write_bytes(path.read_bytes()[: start + length - 1])
    reader.column(steps[5], NUMBERS)
    values, known = reader.column(place, NUMBERS)
    assert known.tolist() == [True, True, False, False, False]
    assert values[:2].tolist() == pytest.approx([4 / 3, 7 / 3])
    path.unlink()
    reader.column(steps[5], NUMBERS)
    assert not reader.column(place, NUMBERS)[1].any()


def test_numbers_that_lie_far_from_each_other(tmp_path):
    run = started(tmp_path / "run")
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add_scalars(NUMBERS[:1], np.array([1.5]))
    file.add("large", np.zeros(300_000))
    file.add_scalars(NUMBERS[1:2], np.array([2.5]))
    run.commit(file)
    run.close(True)
    reader = RunReader(tmp_path / "run")
    (place,) = reader.new_indexes()
    values, known = reader.column(place, NUMBERS[:2])
    assert (values.tolist(), known.tolist()) == ([1.5, 2.5], [True, True])


SMALL = {
    **{f"vector{number}": np.arange(5, dtype=np.float32) + number for number in range(3)},
    "matrix": np.array([[1.5, np.nan], [-2.5, np.inf]]),
    "whole": np.array([[3, -4, 5]], np.int16),
    "truths": np.array([True, False]),
    "number": np.float16(2.5),
}
# Of no element, of no numbers, and too large.
NO_SMALL = {"empty": np.zeros(0), "complex": np.ones(2, complex), "large": np.zeros(513)}


@pytest.fixture
def tensors(tmp_path):
    run = started(tmp_path / "run")
    for step in range(12):
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        for name, value in {**SMALL, **NO_SMALL}.items():
            file.add(name, np.asarray(value) if name != "vector1" else value + step)
        file.add_text("text", ["a"])
        run.commit(file)
    run.close(True)
    reader = RunReader(tmp_path / "run")
    return reader, list(reader.new_indexes())


def rows_by_name(reader, place, names):
    return {names[at]: row for places, rows in reader.rows(place, names) for at, row in zip(places, rows, strict=True)}


def test_small_tensors_are_those_of_the_records(tensors):
    reader, steps = tensors
    names = (*SMALL, *NO_SMALL, "text")
    for place in steps:
        found = rows_by_name(reader, place, names)
        assert {*found} == {*SMALL}
        for name, row in found.items():
            value = reader.read(place, name).value
            assert row.dtype == value.dtype
            np.testing.assert_array_equal(row, value.reshape(-1))


def test_every_changed_byte_of_a_small_tensor_is_noticed(tensors):
    reader, steps = tensors
    place, names = steps[4], ("vector0", "vector1", "vector2")
    path = reader.root / place.index.event_file
    whole = path.read_bytes()
    start, length = place.index.payload.location("vector1")
    for at in range(start, start + length):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        rows_by_name(reader, steps[5], names)
        assert {*rows_by_name(reader, place, names)} == {"vector0", "vector2"}, at - start
        # The bytes that were read are at hand, and are looked at no less.
        with pytest.raises(DamagedRecord):
            reader.read(place, "vector1")


def test_of_a_file_that_is_gone_there_are_no_rows(tensors):
    reader, steps = tensors
    (reader.root / steps[4].index.event_file).unlink()
    assert reader.rows(steps[4], ("vector0",)) == []
    assert reader.rows(steps[4], ()) == []


def test_a_record_that_is_at_hand_is_not_read_again(tensors):
    reader, steps = tensors
    reader.rows(steps[3], ("vector0", "vector2"))
    (reader.root / steps[3].index.event_file).unlink()
    assert reader.read(steps[3], "vector1").value.tolist() == [4, 5, 6, 7, 8]


def test_a_file_that_is_asked_twice_is_read_whole(tmp_path):
    run = started(tmp_path / "run")
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    for name in ("first", "between", "last"):
        file.add(name, np.float64(len(name)))
        file.add(f"filler {name}", np.zeros(4000))
    run.commit(file)
    run.close(True)
    reader = RunReader(tmp_path / "run")
    (place,) = reader.new_indexes()
    for name in ("first", "between"):
        assert reader.column(place, (name,))[0].tolist() == [len(name)]
    (reader.root / place.index.event_file).unlink()
    assert reader.column(place, ("last",))[0].tolist() == [4]
