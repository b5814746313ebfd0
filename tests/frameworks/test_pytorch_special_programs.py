"""PyTorch programs of special fields: none can tell that the agent is there, and each run is as its author expects."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from harness.programs import PROGRAMS, checks_of
from subjects.programs.expected_pytorch_agents import EXPECTED as AGENTS
from subjects.programs.expected_pytorch_methods import EXPECTED as METHODS
from subjects.programs.expected_pytorch_models import EXPECTED as MODELS

WARM = ("torch", "torch._dynamo", "sklearn.datasets", "sklearn.model_selection")
EXPECTED = AGENTS | METHODS | MODELS


@pytest.fixture(scope="module")
def runs(program_runs):
    return program_runs(PROGRAMS / "pytorch", EXPECTED)


@pytest.mark.parametrize("program, check", checks_of(EXPECTED))
def test_a_program_is_untouched_and_saved_as_its_author_expects(runs, program, check):
    getattr(runs(program), f"check_{check}")()


def test_no_name_is_taken_twice():
    assert len(EXPECTED) == len(AGENTS) + len(METHODS) + len(MODELS)
