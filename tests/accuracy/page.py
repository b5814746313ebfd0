"""The page of the documentation: what `check` says of each case, and how often it is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from accuracy.case import FRAMEWORKS, TESTS, Case
from accuracy.cases import CASES
from accuracy.running import CaseFailed, Result, Said

FIRST = 2
_LOUD = ("problem", "warning")
_NOTHING = "nothing"
_ROW = re.compile(r"^\| `([\w-]+)` \|.*\| (\d+) \| ([^|]+) \|$", re.M)

_HEAD = """# How right the rules are

This page is made by `make accuracy`.
Every case is a script that knows nothing of the agent.
It is run with `python -m smd_agent --every 1 script.py`, and `check` judges it with its defaults.
There are no reference runs, and no settings for a single case.

A clean training has nothing wrong with it; what is found there is a false alarm.
Of a training with a fault a finding counts if its rule describes that fault: its cause and advice lead to it.
Where a rule is among the first {first} findings, as `check` prints them, the fault is found.
Findings in the tables are in that order.

Run with {versions}.
A sample of the cases is among the tests, and must give what stands here.
"""
# The releases that the project pins, and where.
_PINS = {
    "PyTorch": ("pyproject.toml", "torch"),
    "TensorFlow": ("pyproject.toml", "tensorflow"),
    "XGBoost": ("pyproject.toml", "xgboost"),
    "MXNet": ("tests/environments/mxnet.txt", "mxnet"),
}
_KINDS = {
    "planted": ("Faults planted with the rules in mind", "Their authors have seen the rules."),
    "reported": (
        "Faults planted blind",
        "Their author has not seen the rules; they are what users report of trainings.\n"
        "Most of the rules that find them were made after they had been missed.",
    ),
    "held_out": (
        "Faults planted blind, held out",
        "Their author has not seen the rules, nor have the authors of the rules seen them.\n"
        "No rule was changed after they had been judged: one for which a rule is made stands above from then on.",
    ),
}


def read(text: str) -> dict[str, Result]:
    """Return the results that a page has, of cases that there are."""
    return {
        name: Result(int(steps), () if found == _NOTHING else tuple(map(_said, found.split(", "))))
        for name, steps, found in _ROW.findall(text)
        if name in CASES
    }


def _said(words: str) -> Said:
    severity, rule = words.split()
    return Said(severity, rule)


def told(case: Case, result: Result | CaseFailed) -> str:
    """Return a line about a case, for a terminal."""
    if isinstance(result, CaseFailed):
        return f"FAILED {result}"
    ended = f"{case.name} ({case.framework}, {result.steps} steps): {_found(result)}"
    if case.kind == "clean":
        return ended + " FALSE ALARM" * bool(result.by(*_LOUD))
    return f"{ended} -> {result.rank(case.rules) or 'NOT FOUND'}"


def summary(results: Mapping[str, Result]) -> str:
    """Return the figures, for a terminal."""
    lines = []
    if clean := _of("clean", results):
        alarms = {level: sum(bool(result.by(level)) for _, result in clean) for level in (*_LOUD, "note")}
        lines.append(f"clean: {len(clean)}, with a problem, warning, note: {', '.join(map(str, alarms.values()))}")
    for kind in _KINDS:
        ranks = [result.rank(case.rules) for case, result in _of(kind, results)]
        lines += [f"{kind}: {len(ranks)}, in the first {FIRST}: {_early(ranks)}, not at all: {ranks.count(0)}"] * bool(
            ranks
        )
    return "\n".join(lines)


def text(results: Mapping[str, Result]) -> str:
    """Return the whole page."""
    parts = [_HEAD.format(first=FIRST, versions=_versions()), *_figures(results), "## Clean trainings", ""]
    rows = [(f"`{c.name}`", c.framework, c.words, str(r.steps), _found(r)) for c, r in _of("clean", results)]
    parts += [_table(("case", "framework", "training", "saved steps", "found"), rows), ""]
    for kind, (title, words) in _KINDS.items():
        rows = [
            (f"`{c.name}`", c.framework, c.words, _listed(c.rules), _place(r.rank(c.rules)), str(r.steps), _found(r))
            for c, r in _of(kind, results)
        ]
        head = ("case", "framework", "fault", "rules that describe it", "place", "saved steps", "found")
        parts += [f"## {title}", "", words, "", _table(head, rows), ""]
    return "\n".join(parts)


def _versions() -> str:
    found = []
    for name, (file, package) in _PINS.items():
        pinned = re.search(rf"\b{package}==([\d.]+)", (TESTS.parent / file).read_text())
        assert pinned, f"{file} pins no {package}"
        found.append(f"{name} {pinned[1]}")
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _figures(results: Mapping[str, Result]) -> list[str]:
    clean = _of("clean", results)
    rows = []
    for framework in (*FRAMEWORKS, "all"):
        own = [result for case, result in clean if framework in (case.framework, "all")]
        rows.append(
            (framework, str(len(own)), *(str(sum(bool(r.by(level)) for r in own)) for level in (*_LOUD, "note")))
        )
    head = ("clean trainings", "cases", "with a problem", "with a warning", "with a note")
    parts = [_table(head, rows), ""]
    kinds = {title: [r.rank(c.rules) for c, r in _of(kind, results)] for kind, (title, _) in _KINDS.items()}
    kinds["all"] = [rank for ranks in kinds.values() for rank in ranks]
    rows = []
    for title, ranks in kinds.items():
        counts = len(ranks), ranks.count(1), _early(ranks), sum(rank > FIRST for rank in ranks), ranks.count(0)
        rows.append((title, *map(str, counts)))
    head = ("faults", "cases", "found first", f"in the first {FIRST}", "later", "not found")
    return [*parts, _table(head, rows), "", "## By rule", "", *_by_rule(results)]


def _by_rule(results: Mapping[str, Result]) -> list[str]:
    words = (
        "Right: faults that the rule describes and has found, at any place.\n"
        "Recall: their part of all faults that it describes; another rule may have found the others.\n"
        "Beside: faulty trainings in which it has found something else, often what follows of the fault.\n"
        "False: clean trainings in which it has found a problem or a warning.\n"
        "Precision: right, as part of right and false.\n"
    )
    faulty = [pair for kind in _KINDS for pair in _of(kind, results)]
    rows = []
    for rule in sorted({rule for case, result in _of(None, results) for rule in (*case.rules, *_rules(result))}):
        described = [result for case, result in faulty if rule in case.rules]
        right = sum(rule in _rules(result) for result in described)
        beside = sum(rule in _rules(result) for case, result in faulty if rule not in case.rules)
        false = sum(rule in result.by(*_LOUD) for _, result in _of("clean", results))
        rows.append(
            (
                f"`{rule}`",
                str(right),
                _share(right, len(described)),
                str(beside),
                str(false),
                _share(right, right + false),
            )
        )
    return [words, _table(("rule", "right", "recall", "beside", "false", "precision"), rows), ""]


def _of(kind: str | None, results: Mapping[str, Result]) -> list[tuple[Case, Result]]:
    return [(case, results[name]) for name, case in CASES.items() if name in results and kind in (None, case.kind)]


def _rules(result: Result) -> set[str]:
    return {one.rule for one in result.said}


def _early(ranks: Iterable[int]) -> int:
    return sum(0 < rank <= FIRST for rank in ranks)


def _found(result: Result) -> str:
    return ", ".join(map(str, result.said)) or _NOTHING


def _listed(rules: Iterable[str]) -> str:
    return ", ".join(rules) or "none"


def _place(rank: int) -> str:
    return str(rank) if rank else "not found"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else "–"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
