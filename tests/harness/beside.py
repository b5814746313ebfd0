"""Scripts run by an interpreter that has the original smdebug, or without the variables of the surrounding tests."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import trial_dump
from harness.kept_runs import kept
from harness.warm import warm_process
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys


def clean_environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD", "PYTHON"))}


def run_code(python: str, code: str) -> str:
    """Run a line of Python, which has to succeed; return what it prints."""
    command = [python, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=clean_environment(), check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_script(
    python: str, script: Path, *words: object, modules: tuple[str, ...], alone: Path | None = None, **variables: str
) -> str:
    """Run a script, which has to succeed, in a fork of a process that has imported ``modules``; return its stdout.

    Args:
        python: an interpreter.
        script: its path.
        words: its arguments.
        modules: what has been imported.
        alone: for a script that uses none of our code, the only folder that it reads and changes; see ``kept``.
        variables: of the environment.
    """
    environment = {**clean_environment(), "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    command = [str(script), *map(str, words)]

    def run() -> subprocess.CompletedProcess[str]:
        return warm_process(modules, environment, (python, "-W", "ignore")).run(command, environment, Path.cwd())

    done = run() if alone is None else kept(command, environment, alone, run, python, modules)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def differences(
    theirs: Any, ours: Any, is_excused: Callable[[tuple[Any, ...], Any, Any], bool], place: tuple[Any, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield where two such dumps differ, and what each of them has there.

    Args:
        theirs: what the original library tells.
        ours: what ours tells.
        is_excused: whether they may differ at a place, where each has this.
        place: that is compared, by its keys. What is computed from values may differ by rounding.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            inner = theirs.get(key, "nothing"), ours.get(key, "nothing")
            yield from differences(*inner, is_excused, (*place, key))
    elif isinstance(theirs, float) and isinstance(ours, float):
        same = math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=1e-5) if "computed" in place else theirs == ours
        if not (same or (math.isnan(theirs) and math.isnan(ours))):
            yield (*place, theirs, ours)
    elif theirs != ours and not is_excused(place, theirs, ours):
        yield (*place, theirs, ours)


def dumps(python: str, run: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all that a trial of the original library tells of a run, and all that ours tells."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.pickle"
        run_script(python, Path(trial_dump.__file__), run, told, modules=("smdebug.trials",))
        theirs = pickle.loads(told.read_bytes())
    return theirs, trial_dump.dump(create_trial(str(run)), ModeKeys)
