"""The series, whatever numbers have for names and values: what was given is read back, in the order of the steps."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
from harness.written_runs import saved, started
from hypothesis import given, settings
from hypothesis import strategies as st

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.series import ABSENT, NARROW, WIDE, Header, parse_header, row_packer, rows_in

names = st.lists(st.text(st.characters(), max_size=20), max_size=12, unique=True).map(tuple)
steps = st.integers(-(2**63), 2**63 - 1)
modes = st.sampled_from([ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])


def bits(number):
    return struct.pack("<d", number)


@given(st.text(st.characters()), names, st.sampled_from([WIDE, NARROW]), st.text(), st.integers(-1, 2**70))
def test_a_header_says_what_it_was_given(worker, columns, number, start, after):
    header = Header(worker, "steps", columns, number, start, after)
    assert parse_header(header.to_bytes()) == header


@given(
    names.flatmap(lambda own: st.tuples(st.just(own), st.lists(st.floats(), min_size=len(own), max_size=len(own)))),
    steps,
    steps,
    st.floats(),
)
def test_a_row_has_the_numbers_it_was_given(row, step, mode_step, seconds):
    columns, values = row
    header = Header("w", "steps", columns)
    data = row_packer(header)(step, mode_step, seconds, 3, values)
    rows, taken = rows_in(data, header)
    assert taken == len(data)
    (found,) = rows
    assert (found["step"], found["mode_step"], found["mode"]) == (step, mode_step, 3)
    assert bits(found["seconds"]) == bits(seconds)
    assert [bits(value) for value in found["values"]] == [bits(value) for value in values]


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_a_row_of_parameters_has_float32(values):
    header = Header("w", "parameters", tuple(map(str, range(len(values)))), NARROW)
    rows, _ = rows_in(row_packer(header)(0, 0, 0.0, 1, values), header)
    np.testing.assert_array_equal(rows["values"][0], np.array(values, np.float32))


a_row = st.tuples(
    st.sampled_from(["steps", "parameters"]),
    st.integers(0, 40),
    modes,
    st.dictionaries(st.sampled_from("abcdefg"), st.floats(width=32) | st.just(ABSENT), max_size=5),
)


@settings(max_examples=60)
@given(st.lists(a_row, max_size=40), st.lists(st.integers(0, 40), max_size=3))
def test_a_run_has_the_last_row_of_each_step(given_rows, flushed_after):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        run = started(root)
        saved(run, 0)
        expected = {"steps": {}, "parameters": {}}
        for number, (table, step, mode, values) in enumerate(given_rows):
            own = tuple(f"series/{name}/{table}" for name in values)
            run.series.add(table, step, mode, step + 1, own, list(values.values()))
            there = {name: value for name, value in zip(own, values.values(), strict=True) if value is not ABSENT}
            expected[table][step] = (mode, there)
            if number in flushed_after:
                run.flush()
        run.close(end_marker=True)
        trial = create_trial(str(root))
        for name, rows in expected.items():
            table = trial.series().get(name)
            found = {} if table is None else read(table)
            assert found.keys() == rows.keys()
            for step, (mode, values) in rows.items():
                assert found[step][0] is mode
                assert {one: bits(value) for one, value in found[step][1].items()} == {
                    one: bits(value) for one, value in values.items()
                }


def read(table):
    return {
        int(step): (
            ModeKeys(int(table.modes[row])),
            {name: float(table[name][row]) for name in table if table.is_there(name)[row]},
        )
        for row, step in enumerate(table.steps)
    }
