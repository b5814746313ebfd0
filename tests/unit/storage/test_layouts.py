"""What is built once for many steps: counted, as the time of a saved step hangs on it."""

import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event_encoder import ScalarBlock, Stamp
from smd_agent.storage import step_file

GROUPS = [(f"smdebug/reductions/min/{number}", f"smdebug/reductions/max/{number}") for number in range(12)]
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


@pytest.fixture
def built(monkeypatch):
    """Count the blocks, and give a function that lays out a step."""
    blocks, known = [], step_file.Layouts()

    class Counted(ScalarBlock):
        def __init__(self, tags, stamp):
            blocks.append(tags)
            super().__init__(tags, stamp)

    monkeypatch.setattr(step_file, "ScalarBlock", Counted)

    def lay_out(step, mode, mode_step):
        before = len(blocks)
        for tags in GROUPS:
            block = known.scalar_block(tags, Stamp(step, mode, mode_step, 1.0))
            assert block.fits(Stamp(step, mode, mode_step, 1.0))
            assert known.scalar_index(tags, block, 64) is known.scalar_index(tags, block, 64)
        return len(blocks) - before

    return lay_out


def test_blocks_are_built_once_for_each_number_of_digits(built):
    counts = {step: built(step, TRAIN, step) for step in range(130)}
    # A step's number has a byte more from 10, 100 and, as one of all modes, 128 on.
    assert {step: count for step, count in counts.items() if count} == dict.fromkeys((0, 10, 100, 128), len(GROUPS))


def test_an_evaluation_between_the_steps_has_nothing_built_anew(built):
    assert (built(20, TRAIN, 15), built(21, EVAL, 5)) == (len(GROUPS), len(GROUPS))
    assert [built(22, TRAIN, 16), built(23, EVAL, 6), built(24, TRAIN, 17), built(25, EVAL, 7)] == [0] * 4


def test_of_more_blocks_than_are_remembered_most_are_not_built_anew(built, monkeypatch):
    monkeypatch.setattr(step_file, "_CACHED_BLOCKS", 10)
    built(1, TRAIN, 1)
    assert built(2, TRAIN, 2) <= 3
