"""Disks that fail while a training saves to them: the training is untouched, and nothing that was listed is lost."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.failing_disk import WAYS
from robustness.part import Case, Part
from robustness.training import PYTORCH, listed

START = Path(__file__).with_name("start_with_disk.py")
# How often a whole run reaches the disk is about seven times for each of its steps.
CALLS_OF_A_STEP = 7
TELLS = re.compile(
    "cannot write|does not answer|takes no more data|could not be written|removed or moved|Nothing is saved|"
    "capture is off"
)
SUMMARY = re.compile(r"saved (\d+) steps? \(.*?\)(?:; (\d+) could not be written)?(?:; (\d+) more (?:are|is) gone)?")


def attempt(case: Case, folder: Path) -> str:
    """Train while the disk fails in one way, from and to a moment of the case's choice."""
    way = WAYS[case.number % len(WAYS)]
    last = CALLS_OF_A_STEP * PYTORCH.steps
    begin = case.choice((1, case.randint(1, last)))
    end = case.choice((begin + case.randint(1, last), 10 * last))
    root, moved, before = folder / "disk" / "run", folder / "disk" / "moved", folder / "listed.json"
    shutil.rmtree(root.parent, ignore_errors=True)
    root.parent.mkdir()
    before.write_text("[]")
    job = {"way": way, "root": str(root), "moved": str(moved), "begin": begin, "end": end, "listed": str(before)}
    disk = json.dumps({**job, "site_hook": str(SITE_HOOK)})
    ended = PYTORCH.run(folder, START, "disk/run", ROBUSTNESS_DISK=disk)
    try:
        return f"{way}: {_end(way, PYTORCH.check_untouched(ended), root.parent, json.loads(before.read_text()))}"
    except AssertionError as error:
        raise AssertionError(f"{way}, from {begin} to {end}: {error}") from None


def _end(way: str, lines: list[str], disk: Path, before: list[str]) -> str:
    steps = {run: PYTORCH.check_listed(run) for run in sorted(disk.iterdir())}
    kept = {name for run in steps for name in listed(run)}
    if way != "removed":
        assert kept.issuperset(before), f"listed before, and lost: {sorted({*before} - kept)}"
    if sum(steps.values()) == PYTORCH.steps:
        return "nothing lost"
    said = " ".join(lines)
    assert TELLS.search(said), f"{sum(steps.values())} of {PYTORCH.steps} steps, and no line says why: {lines}"
    summary = next(filter(None, map(SUMMARY.search, reversed(lines))), None)
    if summary is not None and "takes no more data" not in said:
        told = sum(int(number or 0) for number in summary.groups())
        assert told == PYTORCH.steps, f"{told} of {PYTORCH.steps} steps are accounted for: {lines}"
    return "steps lost, and told"


PART = Part(
    "disks",
    "Failing disks",
    f"`tests/subjects/{PYTORCH.script}` saves everything in every step to a disk that fails in one of {len(WAYS)} ways "
    f"({', '.join(WAYS)}), "
    "from a random moment on, for a while or for good. "
    "What the script prints must be what it prints without the agent, what was listed must stay, and what is missing "
    "must be told.",
    20 * len(WAYS),
    PYTORCH.prepare,
    attempt,
    120,
    None,
    sample=len(WAYS),
)
