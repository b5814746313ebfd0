"""How often the files of a run are opened, counted: a file is read once for all the small tensors in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.written_runs import started

from smd_agent.cli import main
from smd_agent.core.modes import ModeKeys

STEPS = 3
opened: list[str] = []
_watched: list[Path] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watched and str(arguments[0]).startswith(str(_watched[0])):
        opened.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def watching():
    """An audit hook stays as long as its process; it is idle beside these tests."""
    sys.addaudithook(_note)
    yield
    _watched.clear()


@pytest.fixture
def opens(tmp_path: Path) -> Callable[[str, int], int]:
    """Count the opens of a command, of a run with so many small tensors."""

    def count(command: str, tensors: int) -> int:
        folder = tmp_path / str(tensors)
        run = started(folder)
        for step in range(STEPS):
            file = run.begin_step(step, ModeKeys.TRAIN, step)
            for number in range(tensors):
                file.add(f"layer{number}", np.full(3, float(step)))
            run.commit(file)
        run.close(True)
        _watched[:] = [folder]
        opened.clear()
        assert main([command, str(folder)]) == 0
        _watched.clear()
        return len(opened)

    return count


@pytest.mark.parametrize("command", ["ls", "show", "check"])
def test_ten_times_as_many_tensors_are_no_more_opens(opens, command):
    few, many = opens(command, 20), opens(command, 200)
    assert 0 < few == many
