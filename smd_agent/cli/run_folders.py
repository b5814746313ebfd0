"""Runs by their folders, without opening them: those in a folder, those that went beside one, and what one has lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from smd_agent.cli.output import table
from smd_agent.formats.notes import in_words
from smd_agent.printable import count_of, shortened
from smd_agent.storage.claim import describe_state
from smd_agent.storage.worker_files_reader import read_failures, read_lost_steps

# So many lost steps are listed by their numbers.
_LISTED = 10


def runs_in(folder: Path) -> list[Path]:
    """The runs that lie in a folder, in the order of their names; none if it is a run itself or no folder."""
    if _is_run(folder):
        return []
    return [path for path in _sorted(folder) if _is_run(path)]


def list_runs(folder: Path, runs: list[Path]) -> Iterator[str]:
    """Say of each run in a folder what has become of it."""
    rows = []
    for run in runs:
        newest, count = _newest_index(run)
        rows.append((run.name, str(count), describe_state(run, newest)))
    yield f"Runs     {folder}"
    yield ""
    yield from table(("RUN", "STEPS", "STATE"), rows, right="STEPS")


def state_of(folder: Path) -> str | None:
    """Say what has become of the run in a folder; None where there is none."""
    return describe_state(folder, _newest_index(folder)[0]) if _is_run(folder) else None


def further_runs(root: Path) -> list[str]:
    """The runs that went beside this one, or inside of it, because it was there; as paths seen from its parent."""
    parent, name = root.absolute().parent, root.absolute().name
    beside = [path.name for path in _numbered(parent, f"{name}-") if _is_run(path)]
    return beside + [f"{name}/{path.name}" for path in _numbered(root, "run-") if _is_run(path)]


def lost_lines(root: Path) -> Iterator[str]:
    """Say what the workers of a run could not save."""
    for lost in read_lost_steps(root):
        if lost.count:
            why = f" ({shortened(lost.reason)})" if lost.reason else ""
            more = ", ..." if lost.count > _LISTED else ""
            steps = ", ".join(map(str, lost.steps[:_LISTED]))
            yield f"{count_of(lost.count, 'step')} of {shortened(lost.worker)}{why}: {steps}{more}"
        if lost.gone:
            yield f"{count_of(lost.gone, 'step')} of {shortened(lost.worker)}, with a folder that was removed or moved"


def failure_lines(root: Path) -> Iterator[str]:
    """Say what failed of the agent's in a run, and what that has cost."""
    found = read_failures(root)
    several = len({one.worker for one in found}) > 1
    for worker, failure in found[:_LISTED]:
        yield f"Failed   {in_words(failure)}{f' in {shortened(worker)}' if several else ''}"
    if len(found) > _LISTED:
        yield f"         and {len(found) - _LISTED} more failures"


def incomplete_lines(root: Path) -> Iterator[str]:
    """Say what a run lacks: what failed of the agent's, and which steps could not be written."""
    yield from failure_lines(root)
    for line in lost_lines(root):
        yield f"Lost     {line}"


def _is_run(folder: Path) -> bool:
    return (folder / "index").is_dir() or (folder / "collections").is_dir()


def _sorted(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _numbered(folder: Path, prefix: str) -> list[Path]:
    found = [path for path in _sorted(folder) if path.name.startswith(prefix)]
    numbers = {path: path.name.removeprefix(prefix) for path in found}
    return sorted((path for path in found if numbers[path].isdecimal()), key=lambda path: int(numbers[path]))


def _newest_index(run: Path) -> tuple[Path | None, int]:
    """The index file of the newest step, and the number of steps."""
    newest: Path | None = None
    steps: set[str] = set()
    for folder in _sorted(run / "index"):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json")) if folder.is_dir() else []
        steps.update(name.partition("_")[0] for name in names)
        newest = folder / names[-1] if names else newest
    return newest, len(steps)
