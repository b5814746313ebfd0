"""Files of tensors in the layout of safetensors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smd_agent.formats.safetensors import Placed, header, placed_in

TENSORS = [("a", "F32", (2, 3)), ("b", "I64", ()), ("none", "F16", (0, 4)), ("c", "BOOL", (5,))]
CONTENT = header(TENSORS) + bytes(24 + 8 + 0 + 5)


def test_places_follow_one_another():
    found = placed_in(CONTENT)
    begin = len(CONTENT) - 37
    assert begin % 8 == 0
    assert found["a"] == Placed("F32", (2, 3), begin, begin + 24)
    assert found["b"] == Placed("I64", (), begin + 24, begin + 32)
    assert found["none"] == Placed("F16", (0, 4), begin + 32, begin + 32)
    assert found["c"] == Placed("BOOL", (5,), begin + 32, begin + 37)


@pytest.mark.parametrize("length", [0, 7, 8, 40, len(CONTENT) - 1])
def test_a_file_that_is_cut_off_is_refused(length):
    with pytest.raises(ValueError, match=r"cut off|cannot be read"):
        placed_in(CONTENT[:length])


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"dtype": "F32"},
        {"dtype": "F5", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [10], "data_offsets": [0, 40]},
    ],
)
def test_what_cannot_be_there_is_refused(entry):
    text = json.dumps({"a": entry}).encode()
    with pytest.raises(ValueError, match="a cannot be read"):
        placed_in(len(text).to_bytes(8, "little") + text + bytes(8))


def test_the_library_of_that_name_reads_it(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    values = np.arange(6, dtype="f4").reshape(2, 3)
    content = header([("a", "F32", (2, 3)), ("b", "BOOL", (2,))]) + values.tobytes() + b"\1\0"
    found = safetensors.load(content)
    np.testing.assert_array_equal(found["a"], values)
    assert found["b"].tolist() == [True, False]
