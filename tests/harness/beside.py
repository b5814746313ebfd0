"""Scripts run by an interpreter that has the original smdebug, or without the variables of the surrounding tests."""

from __future__ import annotations

import os
from pathlib import Path

from harness.warm import warm_process

DUMP = Path(__file__).parents[1] / "compat" / "trial_dump.py"


def run_script(python: str, script: Path, *words: object, modules: tuple[str, ...], **variables: str) -> None:
    """Run a script, which has to succeed, in a fork of a process that has imported ``modules``."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD", "PYTHON"))}
    environment = {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    process = warm_process(modules, environment, (python, "-W", "ignore"))
    done = process.run([str(script), *map(str, words)], environment, Path.cwd())
    assert done.returncode == 0, done.stdout + done.stderr


def dump_by_them(python: str, run: Path, told: Path) -> None:
    """Have the original library tell all that it reads of a run; ``told`` gets it, pickled."""
    run_script(python, DUMP, run, told, modules=("smdebug.trials",))
