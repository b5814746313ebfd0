"""Runs of ``verify``: its exit code, and the object that it prints."""

from __future__ import annotations

import json
from typing import Any


def verify(runner: Any, *words: object, **variables: str) -> tuple[int, dict[str, Any]]:
    """Verify a script; return the exit code, and what is printed for programs."""
    done = runner.by_launcher("verify", "--json", *words, OMP_NUM_THREADS="1", **variables)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def assert_equal(found: tuple[int, dict[str, Any]], *, steps: int, losses: int, weights: int) -> None:
    """Assert that a script is told to be the same with the agent, over so many steps and so many values of each."""
    code, told = found
    assert (told["verdict"], told["first_difference"], told["failures"], code) == ("equal", None, [], 0), told
    assert (told["steps"], told["losses"], told["weights"]) == (steps, losses, weights)
    assert told["saved"]["tensors"] > 0
