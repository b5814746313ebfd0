"""Files of the series as bytes: headers and rows are read as they were written, and anything else counts as none."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from smd_agent.formats.paths import parse_series_file, series_path
from smd_agent.formats.series import (
    ABSENT,
    NARROW,
    WIDE,
    Header,
    UnfitSeries,
    header_size,
    is_there,
    parse_header,
    row_packer,
    rows_in,
)

HEADER = Header("worker_0", "steps", ("series/loss", "series/learning_rate"), WIDE, "abc", 7)


def test_the_bytes_of_a_row_are_those_of_the_documentation():
    row = row_packer(HEADER)(5, 4, 1.5, 1, (2.0, math.inf))
    assert len(row) == HEADER.row_bytes == 48
    step, mode_step, seconds, mode, zeros, check, *numbers = struct.unpack("<qqdB5sH2d", row)
    assert (step, mode_step, seconds, mode, zeros, numbers) == (5, 4, 1.5, 1, bytes(5), [2.0, math.inf])
    assert check
    assert sum(struct.unpack(f"<{len(row) // 2}H", row)) % 65535 == 0


def test_the_bytes_of_a_header_are_those_of_the_documentation():
    data = HEADER.to_bytes()
    magic, version, size, text, _ = struct.unpack_from("<8sIIII", data)
    assert (magic, version, size) == (b"SMDSERIE", 1, len(data))
    assert size % 64 == 0
    assert data[24 : 24 + text].startswith(b'{"worker": "worker_0", "table": "steps", "columns": ["series/loss", ')
    assert header_size(data[:24]) == size
    assert header_size(data[:23]) == 0
    assert parse_header(data) == HEADER


@pytest.mark.parametrize("number", [WIDE, NARROW])
def test_a_number_that_is_not_there_is_another_nan_than_others(number):
    header = Header("w", "parameters", ("a", "b", "c", "d"), number)
    rows, _ = rows_in(row_packer(header)(0, 0, 0.0, 1, (ABSENT, math.nan, -math.nan, 0.0)), header)
    assert np.isnan(rows["values"][0]).tolist() == [True, True, True, False]
    assert is_there(rows["values"][:, 0]).tolist() == [False]
    assert is_there(rows["values"])[0].tolist() == [False, True, True, True]


def test_what_no_float32_holds_becomes_infinite():
    header = Header("w", "parameters", ("a", "b"), NARROW)
    rows, _ = rows_in(row_packer(header)(0, 0, 0.0, 1, (1e300, -1e300)), header)
    assert rows["values"].tolist() == [[math.inf, -math.inf]]


@pytest.mark.parametrize("number", [WIDE, NARROW])
def test_a_row_has_as_many_numbers_as_there_are_columns(number):
    pack = row_packer(Header("w", "steps", ("a", "b"), number))
    for values in ((), (1.0,), (1.0, 2.0, 3.0)):
        with pytest.raises((ValueError, struct.error)):
            pack(0, 0, 0.0, 1, values)


def test_every_bit_that_changes_makes_a_row_none():
    row = row_packer(HEADER)(5, 4, 1.5, 1, (2.0, math.inf))
    for place in range(8 * len(row)):
        changed = bytearray(row)
        changed[place // 8] ^= 1 << place % 8
        assert not rows_in(bytes(changed), HEADER)[0].size
    assert not rows_in(bytes(len(row)), HEADER)[0].size


def test_rows_around_one_that_is_none_are_read_and_the_end_is_told():
    pack = row_packer(HEADER)
    good = [pack(step, step, 0.0, 1, (0.0, 0.0)) for step in range(5)]
    data = b"".join([*good[:2], bytes(48), *good[2:], bytes(48), good[0][:20]])
    rows, taken = rows_in(data, HEADER)
    assert rows["step"].tolist() == [0, 1, 2, 3, 4]
    assert taken == 6 * 48
    assert rows_in(b"", HEADER)[1] == 0
    assert rows_in(bytes(100), HEADER)[1] == 0


def test_a_damaged_header_is_refused():
    data = HEADER.to_bytes()
    changes = {8: b"\2", 12: bytes(4), 30: b"?", 16: bytes(8), 0: b"X"}
    changed = [data[:place] + new + data[place + len(new) :] for place, new in changes.items()]
    for damaged in (*changed, data[:12] + b"\xff" * 4 + data[16:]):
        with pytest.raises(UnfitSeries):
            parse_header(damaged)


@pytest.mark.parametrize(
    "fields",
    [{"columns": [1]}, {"columns": 3}, {"worker": 0}, {"number": "int8"}, {"after": 1.5}, {"after": None}],
)
def test_a_header_that_says_something_else_is_refused(fields):
    with pytest.raises(UnfitSeries):
        parse_header(HEADER._replace(**fields).to_bytes())


def test_names_of_files():
    name = series_path("worker_0", "steps", 12)
    assert name == "series/worker_0_steps_000000000000012.smd"
    assert parse_series_file(name.rpartition("/")[2]) == ("worker_0", "steps", 12)
    device = "/job:localhost/replica:0"
    assert parse_series_file(series_path(device, "parameters", 0).rpartition("/")[2]) == (device, "parameters", 0)
    assert parse_series_file("index_cache.smd") is None
