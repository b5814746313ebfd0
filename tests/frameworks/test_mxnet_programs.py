"""Whole Gluon programs: none can tell that the agent is there, and each run has what the program's author expects."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.programs import PROGRAMS, checks_of
from subjects.programs.expected_mxnet import EXPECTED


@pytest.fixture(scope="module")
def runs(program_runs):
    return program_runs(PROGRAMS / "mxnet", EXPECTED)


@pytest.mark.parametrize("program, check", checks_of(EXPECTED))
def test_a_program_is_untouched_and_saved_as_its_author_expects(runs, program, check):
    getattr(runs(program), f"check_{check}")()


def test_all_programs_are_run():
    assert {path.stem for path in (PROGRAMS / "mxnet").glob("*.py")} == {*EXPECTED}
