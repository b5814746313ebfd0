"""What the agent adds to the start of an interpreter: CPU time, as ratios to a plain interpreter.

Two empty virtual environments are made, one with the agent installed (files linked, byte code compiled) and
one without. The cases are run in turn, over and over, so that a busy machine disturbs all of them alike; the
median counts. CPU time (user + system, from wait4) is far steadier than the clock.
"""

from __future__ import annotations

import argparse
import compileall
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

import smd_agent

PACKAGE = Path(smd_agent.__file__).parent
HOOK = '{"LocalPath": "/nonexistent"}'


class Row(NamedTuple):
    """One measured case; the target is the ratio it must not exceed, None where none is set."""

    name: str
    milliseconds: float
    ratio: float
    target: float | None


class Case(NamedTuple):
    """A command line with what it adds to the environment."""

    name: str
    command: list[str]
    variables: dict[str, str]
    target: float | None


def measure(runs: int = 40) -> list[Row]:
    """Run every case `runs` times in turn; return one row each, that of the plain interpreter first."""
    with tempfile.TemporaryDirectory() as folder:
        cases = _cases(Path(folder))
        times: dict[str, list[float]] = {case.name: [] for case in cases}
        order = random.Random(0)
        for number in range(runs + 2):
            # What ran before leaves its traces in the caches, so each case shall follow each other one.
            for case in order.sample(cases, len(cases)):
                spent = _cpu_seconds(case, folder)
                # The first two rounds only warm the file cache.
                if number >= 2:
                    times[case.name].append(spent)
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians[cases[0].name]
    return [Row(case.name, medians[case.name] * 1000, medians[case.name] / base, case.target) for case in cases]


def _cases(folder: Path) -> list[Case]:
    plain = make_interpreter(folder / "plain", installed=False)
    agent = make_interpreter(folder / "agent", installed=True)
    volume = make_volume(folder / "volume")
    nothing = ["-c", "pass"]
    on = {"SMD_AGENT_HOOK": HOOK}
    return [
        Case("plain interpreter", [plain, *nothing], {}, None),
        Case("installed, variable unset", [agent, *nothing], {}, 1.02),
        Case("armed, no framework imported", [agent, *nothing], on, 1.5),
        Case("armed by PYTHONPATH", [plain, *nothing], {**on, "PYTHONPATH": volume}, 1.5),
        Case("launcher", [agent, "-m", "smd_agent", "--out", str(folder / "out"), *nothing], {}, None),
    ]


def door_folder() -> Path:
    """Return the folder of our sitecustomize.py: inside an installed package, beside one in a source tree."""
    inner = PACKAGE / "_site"
    return inner if (inner / "sitecustomize.py").is_file() else PACKAGE.parent


def make_interpreter(folder: Path, *, installed: bool) -> str:
    """Make an empty virtual environment, with the agent in it or not, and return its interpreter."""
    venv.EnvBuilder(symlinks=True).create(folder)
    site_packages = next(folder.glob("lib/python*/site-packages"))
    if installed:
        shutil.copy(PACKAGE.parent / "smd_agent.pth", site_packages)
        _copy_package(site_packages)
    return str(folder / "bin" / "python")


def make_volume(folder: Path) -> str:
    """Make a folder to put on PYTHONPATH of an interpreter that has not got the agent installed."""
    folder.mkdir()
    shutil.copy(door_folder() / "sitecustomize.py", folder)
    _copy_package(folder)
    return str(folder)


def _copy_package(folder: Path) -> None:
    shutil.copytree(PACKAGE, folder / "smd_agent", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder, quiet=2)


def _cpu_seconds(case: Case, folder: str) -> float:
    dropped = ("PYTHONPATH", "SMD_AGENT_HOOK", "SMDEBUG_CONFIG_FILE_PATH", "USE_SMDEBUG")
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    process = subprocess.Popen(
        case.command, env={**environment, **case.variables}, cwd=folder, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{case.name}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def rows(runs: int = 40) -> list[tuple[str, float, float | None]]:
    """Return (name, ratio to the plain interpreter, target or None) for every case."""
    return [(row.name, row.ratio, row.target) for row in measure(runs)]


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs of each case (default: 40)")
    table = measure(parser.parse_args(argv).runs)
    print(f"{'start of an interpreter':<32}{'CPU ms':>8}{'ratio':>8}{'target':>8}")
    for row in table:
        target = "" if row.target is None else f"{row.target:.2f}"
        print(f"{row.name:<32}{row.milliseconds:>8.1f}{row.ratio:>8.3f}{target:>8}")
    return int(any(row.target is not None and row.ratio > row.target for row in table))


if __name__ == "__main__":
    sys.exit(main())
