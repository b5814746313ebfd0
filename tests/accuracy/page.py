"""The page of the documentation: what `check` says of each case, and how often it is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from accuracy.case import FRAMEWORKS, TESTS, Case
from accuracy.cases import CASES
from accuracy.running import LAUNCHES, CaseFailed, Result, Said

FIRST = 2
_LOUD = ("problem", "warning")
_NOTHING = "nothing"
_NOT_MEASURED = "–"
_SAME = "the same"
# A case's row ends with its steps by each launch, and then what was found by each.
_ROW = re.compile(r"^\| `([\w-]+)` \|.*\| (\d+|–) \| (\d+|–) \| ([^|]+) \| ([^|]+) \|$", re.M)

Measured = Mapping[str, Mapping[str, Result]]
"""Results by launch, and then by case."""

_HEAD = """# How right the rules are

This page is made by `make accuracy`.
Every case is a script that knows nothing of the agent.
It is run twice: with `python -m smd_agent script.py`, the default launch, and with `--every 1`.
`check` judges each run with its defaults.
There are no reference runs, and no settings for a single case.

A clean training has nothing wrong with it; what is found there is a false alarm.
Of a training with a fault a finding counts if its rule describes that fault: its cause and advice lead to it.
Where a rule is among the first {first} findings, as `check` prints them, the fault is found.
Findings in the tables are in that order; "–" is not measured.

Run with {versions}.
A sample of the cases is among the tests, and must give what stands here of `--every 1`.
What the default launch saves goes by [the time that it takes](start.md#what-the-launcher-saves), and may differ.
"""
# The releases that the project pins, and where.
_PINS = {
    "PyTorch": ("pyproject.toml", "torch"),
    "TensorFlow": ("pyproject.toml", "tensorflow"),
    "XGBoost": ("pyproject.toml", "xgboost"),
    "MXNet": ("tests/environments/mxnet.txt", "mxnet"),
}
_BY_RULE = """Right: faults that the rule describes and has found, at any place.
Recall: their part of all faults that it describes; another rule may have found the others.
Beside: faulty trainings in which it has found something else, often what follows of the fault.
False: clean trainings in which it has found a problem or a warning.
Precision: right, as part of right and false.
"""
_CLEAN = (
    "Their authors know the agent and its rules, but for that of those whose names begin with `odd-`.\n"
    "These are by the author of the faults planted blind."
)
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


def read(text: str) -> dict[str, dict[str, Result]]:
    """Return the results that a page has, of cases that there are, by launch."""
    measured: dict[str, dict[str, Result]] = {launch: {} for launch in LAUNCHES}
    for name, *cells in _ROW.findall(text):
        steps, found = cells[: len(LAUNCHES)], cells[len(LAUNCHES) :]
        for launch, number, words in zip(LAUNCHES, steps, found, strict=True):
            if name in CASES and number != _NOT_MEASURED:
                said = found[0] if words == _SAME else words
                rules = () if said == _NOTHING else tuple(map(_said, said.split(", ")))
                measured[launch][name] = Result(int(number), rules)
    return measured


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


def text(measured: Measured) -> str:
    """Return the whole page."""
    parts = [_HEAD.format(first=FIRST, versions=_versions()), *_figures(measured), *_not_found(measured)]
    parts += ["## By rule", "", _BY_RULE]
    for launch, results in measured.items():
        parts += [f"### By rule, {launch}", "", _by_rule(results), ""] * bool(results)
    parts += ["## Clean trainings", "", _CLEAN, ""]
    ends = (*_heads("saved steps"), *_heads("found"))
    rows = [(f"`{c.name}`", c.framework, c.words, *_ends(c, measured)) for c in _cases("clean", measured)]
    parts += [_table(("case", "framework", "training", *ends), rows), ""]
    for kind, (title, words) in _KINDS.items():
        rows = [
            (f"`{c.name}`", c.framework, c.words, _listed(c.rules), *_places(c, measured), *_ends(c, measured))
            for c in _cases(kind, measured)
        ]
        head = ("case", "framework", "fault", "rules that describe it", *_heads("place"), *ends)
        parts += [f"## {title}", "", words, "", _table(head, rows), ""]
    return "\n".join(parts)


def _heads(word: str) -> list[str]:
    return [f"{word}, {launch}" for launch in LAUNCHES]


def _ends(case: Case, measured: Measured) -> list[str]:
    """Return the ends of a case's row: its steps by each launch, and then what was found by each."""
    results = [measured.get(launch, {}).get(case.name) for launch in LAUNCHES]
    steps = [str(each.steps) if each else _NOT_MEASURED for each in results]
    found = [_found(each) if each else _NOT_MEASURED for each in results]
    return [*steps, found[0], *(_SAME if each == found[0] != _NOT_MEASURED else each for each in found[1:])]


def _places(case: Case, measured: Measured) -> list[str]:
    results = [measured.get(launch, {}).get(case.name) for launch in LAUNCHES]
    return [_place(each.rank(case.rules)) if each else _NOT_MEASURED for each in results]


def _cases(kind: str, measured: Measured) -> list[Case]:
    names = {name for results in measured.values() for name in results}
    return [case for name, case in CASES.items() if name in names and case.kind == kind]


def _versions() -> str:
    found = []
    for name, (file, package) in _PINS.items():
        pinned = re.search(rf"\b{package}==([\d.]+)", (TESTS.parent / file).read_text())
        assert pinned, f"{file} pins no {package}"
        found.append(f"{name} {pinned[1]}")
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _figures(measured: Measured) -> list[str]:
    rows = []
    for framework in (*FRAMEWORKS, "all"):
        for launch in LAUNCHES:
            clean = _of("clean", measured.get(launch, {}))
            own = [result for case, result in clean if framework in (case.framework, "all")]
            counts = [len(own), *(sum(bool(r.by(level)) for r in own) for level in (*_LOUD, "note"))]
            rows.append((framework, launch, *_counts(counts)))
    head = ("clean trainings", "launch", "cases", "with a problem", "with a warning", "with a note")
    parts = [_table(head, rows), ""]
    rows = []
    for title, kinds in {**{title: [kind] for kind, (title, _) in _KINDS.items()}, "all": [*_KINDS]}.items():
        for launch in LAUNCHES:
            ranks = [r.rank(c.rules) for kind in kinds for c, r in _of(kind, measured.get(launch, {}))]
            counts = [len(ranks), ranks.count(1), _early(ranks), sum(rank > FIRST for rank in ranks), ranks.count(0)]
            rows.append((title, launch, *_counts(counts)))
    head = ("faults", "launch", "cases", "found first", f"in the first {FIRST}", "later", "not found")
    return [*parts, _table(head, rows), ""]


def _counts(counts: list[int]) -> list[str]:
    """Return the number of cases and what is counted of them, which is nothing where there is no case."""
    return [str(count) if counts[0] else _NOT_MEASURED for count in counts]


def _not_found(measured: Measured) -> list[str]:
    found = {_NOT_MEASURED, *(str(place) for place in range(1, FIRST + 1))}
    rows = [
        (f"`{case.name}`", title, *_places(case, measured))
        for kind, (title, _) in _KINDS.items()
        for case in _cases(kind, measured)
        if not found.issuperset(_places(case, measured))
    ]
    words = f"Faults that a launch does not show among the first {FIRST} findings, and their places."
    head = ("case", "one of", *_heads("place"))
    return ["## Not found", "", words, "", _table(head, rows), ""]


def _by_rule(results: Mapping[str, Result]) -> str:
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
    return _table(("rule", "right", "recall", "beside", "false", "precision"), rows)


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
