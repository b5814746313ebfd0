"""Faulty programs by authors who have seen no rule and no list of rules, frozen before a rule was changed for them.

There are three collections of several sets; each was made by other authors, when the one before had been worked on.
``strangers/<set>/<name>.py`` has the fault. ``strangers/<set>.json`` tells what it is, how it is mended, and what the
default launch said of it at the first look: the rules of its findings, and whether one of the first two named the fault
and its cause, as judged by hand. ``naming`` has the rules that name it, by hand too; what is said now is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.programs import ONE_THREAD
from harness.runner import environment

FOLDER = Path(__file__).parent / "strangers"
ROOT = FOLDER.parents[2]
FIRST = {
    "pytorch": "PyTorch, loops",
    "language": "language models: loops, transformers, accelerate, Lightning",
    "keras": "Keras",
    "tapes_lightning": "GradientTape; Lightning",
    "gluon_xgboost": "Gluon; XGBoost",
}
SECOND = {f"second_{name}": words for name, words in FIRST.items()}
THIRD = {f"third_{name}": words for name, words in FIRST.items()}
EVERY = {**FIRST, **SECOND, **THIRD}
_SECONDS = 300
_FIRST = 2
_JOBS = 2


@dataclass(frozen=True)
class Stranger:
    """A program with a fault.

    Attributes:
        group: one of `EVERY`.
        name: of the file.
        environment: that has what it imports; empty: that of the tests.
        fault, cause: what is wrong, and why that makes the training worse.
        fix: parts that are mended: the first line, how many are taken out, and the lines that come there.
        first_look: rules that found something, the worst first.
        twin_first_look: severities and rules of what was found in its corrected twin then; None if that is not known.
        named: whether one of the first two findings names the fault and its cause.
        naming: rules whose finding does so; none if there is no such rule.
        now, twin_now: severities and rules of what is found in it and in its corrected twin by today's rules; None if
            that was not measured.
    """

    group: str
    name: str
    environment: str
    fault: str
    cause: str
    fix: list[tuple[int, int, list[str]]]
    first_look: list[str]
    named: bool
    naming: list[str]
    twin_first_look: list[str] | None = None
    now: list[str] | None = None
    twin_now: list[str] | None = None

    @property
    def is_named_now(self) -> bool:
        """True if one of the first two findings is of a rule that names the fault."""
        return any(found.split()[-1] in self.naming for found in (self.now or ())[:_FIRST])

    @property
    def has_false_alarm(self) -> bool:
        """True if there is a problem or a warning in the corrected twin."""
        return _is_alarm(self.twin_now)

    @property
    def had_false_alarm(self) -> bool:
        """True if there was one at the first look."""
        return _is_alarm(self.twin_first_look)

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


def _is_alarm(twin: Iterable[str] | None) -> bool:
    return any(not found.startswith("note ") for found in twin or ())


def strangers(sets: Iterable[str] = EVERY) -> Iterator[Stranger]:
    """Yield those of some sets, or all, by set and name."""
    for group in sets:
        for told in json.loads((FOLDER / f"{group}.json").read_text()):
            yield Stranger(group, **{name: told[name] for name in Stranger.__annotations__ if name in told})


def page() -> str:
    """Return the page of the documentation."""
    collections = {"third": THIRD, "second": SECOND, "first": FIRST}
    programs = {which: [*strangers(sets)] for which, sets in collections.items()}
    heads = {which: _summary(sets, programs[which]) for which, sets in collections.items()}
    numbers = {f"{which}_count": len(every) for which, every in programs.items()}
    text = (FOLDER / "head.md").read_text().format(twins=85, **numbers, **heads)
    for which, sets in collections.items():
        for group, words in sets.items():
            heads = ("program", "fault", "first look", "named", "twin then", "now", "named now", "twin now")
            lines = [_line(heads), _line("---" for _ in heads)]
            lines += [_line(_cells(one)) for one in programs[which] if one.group == group]
            text += f"\n## {words}, {which} collection\n\n" + "\n".join(lines) + "\n"
    return text


def _summary(sets: Mapping[str, str], every: list[Stranger]) -> str:
    """Return a table of how many there are, and how many are named."""
    heads = ("programs", "faults", "named at the first look", "something else then", "false alarms then", "named now")
    heads = (*heads, "false alarms now")
    rows = [_counted(words, [one for one in every if one.group == group]) for group, words in sets.items()]
    return "\n".join([_line(heads), _line("---" for _ in heads), *map(_line, rows), _line(_counted("all", every))])


def _counted(words: str, programs: list[Stranger]) -> Iterator[object]:
    yield words
    yield len(programs)
    yield sum(one.named for one in programs)
    yield sum(bool(one.first_look) and not one.named for one in programs)
    yield _part([one.had_false_alarm for one in programs if one.twin_first_look is not None])
    yield _part([one.is_named_now for one in programs if one.now is not None])
    yield _part([one.has_false_alarm for one in programs if one.twin_now is not None])


def _part(are_so: list[bool]) -> str:
    return f"{sum(are_so)} of {len(are_so)}" if are_so else "not measured"


def _cells(one: Stranger) -> Iterator[str]:
    yield f"`{one.name}`"
    yield one.fault.replace("|", "\\|").replace("<", "\\<")
    yield ", ".join(one.first_look) or "nothing"
    yield "yes" if one.named else "no"
    yield _said(one.twin_first_look)
    yield _said(one.now)
    yield "not measured" if one.now is None else "yes" if one.is_named_now else "no"
    yield _said(one.twin_now)


def _said(found: list[str] | None) -> str:
    return "not measured" if found is None else ", ".join(found) or "nothing"


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def keep(looked: dict[tuple[str, str], list[str]], mended: bool) -> None:
    """Write down what was found, by set and name of the program."""
    for group in EVERY:
        file = FOLDER / f"{group}.json"
        told = json.loads(file.read_text())
        for one in told:
            if (group, one["name"]) in looked:
                one["twin_now" if mended else "now"] = looked[group, one["name"]]
        file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


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
    parser.add_argument("--keep", action="store_true", help="write down what is found, for the page")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page instead")
    args = parser.parse_args()
    if args.page:
        args.page.write_text(page())
        return
    chosen = [
        one for one in strangers() if not args.names or any(part in f"{one.group}/{one.name}" for part in args.names)
    ]
    with ThreadPoolExecutor(_JOBS) as pool:
        for one, found in zip(chosen, pool.map(lambda one: look(one, args.mended), chosen), strict=True):
            print(f"{one.group}/{one.name}: {_said(found)}", flush=True)
            if args.keep:
                keep({(one.group, one.name): found}, args.mended)


if __name__ == "__main__":
    main()
