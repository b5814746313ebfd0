"""Faulty programs by authors who have seen no rule and no list of rules, frozen before a rule was changed for them.

``strangers/<set>/<name>.py`` has the fault. ``strangers/<set>.json`` tells what it is, how it is mended, and what the
default launch said of it at the first look: the rules of its findings, and whether one of the first two named the fault
and its cause, as judged by hand.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.programs import ONE_THREAD
from harness.runner import environment

FOLDER = Path(__file__).parent / "strangers"
ROOT = FOLDER.parents[2]
SETS = {
    "pytorch": "PyTorch, loops",
    "language": "language models: loops, transformers, accelerate, Lightning",
    "keras": "Keras",
    "tapes_lightning": "GradientTape; Lightning",
    "gluon_xgboost": "Gluon; XGBoost",
}
_SECONDS = 300


@dataclass(frozen=True)
class Stranger:
    """A program with a fault.

    Attributes:
        group: one of `SETS`.
        name: of the file.
        environment: that has what it imports; empty: that of the tests.
        fault, cause: what is wrong, and why that makes the training worse.
        fix: parts that are mended: the first line, how many are taken out, and the lines that come there.
        first_look: rules that found something, the worst first.
        named: whether one of the first two findings names the fault and its cause.
    """

    group: str
    name: str
    environment: str
    fault: str
    cause: str
    fix: list[tuple[int, int, list[str]]]
    first_look: list[str]
    named: bool

    @property
    def path(self) -> Path:
        """The program."""
        return FOLDER / self.group / f"{self.name}.py"

    def mended(self) -> str:
        """Return the text of the corrected twin."""
        lines = self.path.read_text().splitlines()
        for first, count, new in reversed(self.fix):
            lines[first - 1 : first - 1 + count] = new
        return "\n".join(lines) + "\n"


def strangers() -> Iterator[Stranger]:
    """Yield all, by set and name."""
    for group in SETS:
        for told in json.loads((FOLDER / f"{group}.json").read_text()):
            yield Stranger(group, **{name: told[name] for name in Stranger.__annotations__ if name in told})


def page() -> str:
    """Return the page of the documentation."""
    every = [*strangers()]
    rows = []
    for group, words in SETS.items():
        own = [one for one in every if one.group == group]
        found = sum(bool(one.first_look) and not one.named for one in own)
        rows.append((words, len(own), sum(one.named for one in own), found))
    rows.append(("all", *(sum(row[place] for row in rows) for place in (1, 2, 3))))
    lines = ["| programs | faults | named, with the cause | something else found |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    text = (FOLDER / "head.md").read_text().format(count=len(every), twins=85, summary="\n".join(lines))
    for group, words in SETS.items():
        text += f"\n## {words}\n\n| program | fault | first look | named |\n| --- | --- | --- | --- |\n"
        for one in every:
            if one.group == group:
                said = ", ".join(one.first_look) or "nothing"
                fault = one.fault.replace("|", "\\|").replace("<", "\\<")
                text += f"| `{one.name}` | {fault} | {said} | {'yes' if one.named else 'no'} |\n"
    return text


def look(one: Stranger, mended: bool) -> list[str]:
    """Run a program with the default launch, and return the findings of `check`, each in some words."""
    python = ROOT / f".venv{'-' * bool(one.environment)}{one.environment}" / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        script, run = Path(folder, f"{one.name}.py"), Path(folder, "run")
        script.write_text(one.mended() if mended else one.path.read_text())
        options = {"cwd": folder, "env": environment(**ONE_THREAD), "timeout": _SECONDS, "capture_output": True}
        words = [str(python), "-W", "ignore", "-m", "smd_agent", "run", "--out", str(run), str(script)]
        done = subprocess.run(words, check=False, **options)
        told = [sys.executable, "-m", "smd_agent", "check", str(run), "--json"]
        judged = subprocess.run(told, check=False, text=True, **options)
    if done.returncode or not judged.stdout:
        return [f"exit code {done.returncode}"]
    said = ((found["severity"], found["rule"]) for found in json.loads(judged.stdout)["findings"])
    return [" ".join(words) for words in dict.fromkeys(said)]


def main() -> None:
    """Run programs and print what is found in them, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m accuracy.strangers", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of sets and programs; all, if there are none")
    parser.add_argument("--mended", action="store_true", help="run the corrected twins")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page instead")
    args = parser.parse_args()
    if args.page:
        args.page.write_text(page())
        return
    for one in strangers():
        name = f"{one.group}/{one.name}"
        if not args.names or any(part in name for part in args.names):
            print(f"{name}: {', '.join(look(one, args.mended)) or 'nothing'}", flush=True)


if __name__ == "__main__":
    main()
