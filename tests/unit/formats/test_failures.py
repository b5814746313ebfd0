"""The file of what failed of the agent's: what is written is read, and whatever stands there instead is left out."""

from __future__ import annotations

import json

import pytest

from smd_agent.core.failure_record import Failure
from smd_agent.formats.notes import failures_of, failures_text, in_words

LOSSES = Failure("losses", "saving a loss", "ValueError: no", 3, 5, "TRAIN", 2)
GONE = Failure("weights", "saving weights", "ValueError: no", 3, 5, "TRAIN", 3, off=True)
STEPS = Failure("steps", "opening a step", "ValueError: no", -1, -1)


def test_what_is_written_is_read():
    assert failures_of(failures_text([LOSSES, GONE, STEPS])) == [LOSSES, GONE, STEPS]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"failures": 3}', '{"failures": [3, {}, {"domain": 1}]}', "[" * 99999]
)
def test_what_is_none_is_left_out(text):
    assert failures_of(text) == []


def test_of_another_file_no_more_than_fits_is_kept():
    text = json.dumps(
        {"failures": [{**json.loads(failures_text([LOSSES]))["failures"][0], "error": "x" * 99999}] * 9999}
    )
    found = failures_of(text)
    assert len(found) == 1000
    assert len(found[0].error) == 2000


def test_in_words():
    assert list(map(in_words, (LOSSES, GONE, STEPS))) == [
        "losses of steps 3 to 5 may be missing: saving a loss failed 2 times (ValueError: no)",
        "weights are not saved after step 5: saving weights failed 3 times (ValueError: no)",
        "the first step may be incomplete: opening a step failed (ValueError: no)",
    ]
