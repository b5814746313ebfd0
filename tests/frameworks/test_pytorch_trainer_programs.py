"""Whole programs of Lightning: none can tell that the agent is there, and each run has what its author expects."""

from __future__ import annotations

import importlib.util

import pytest

if importlib.util.find_spec("lightning") is None:
    pytest.skip("there is no lightning", allow_module_level=True)

from harness.programs import PROGRAMS, checks_of
from subjects.programs.expected_trainers import EXPECTED


@pytest.fixture(scope="module")
def runs(program_runs):
    return program_runs(PROGRAMS / "trainers", EXPECTED)


@pytest.mark.parametrize("program, check", checks_of(EXPECTED))
def test_a_program_is_untouched_and_saved_as_its_author_expects(runs, program, check):
    getattr(runs(program), f"check_{check}")()


def test_all_programs_are_run():
    assert {path.stem for path in (PROGRAMS / "trainers").glob("*.py")} == {*EXPECTED}
