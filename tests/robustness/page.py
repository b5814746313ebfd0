"""The page of the documentation: what was tried, and how it ended."""

from __future__ import annotations

from robustness.limits import Result
from robustness.part import Part
from robustness.parts import PARTS

HEAD = """# What it survives

This page is made by `make robustness`.
Every case is made from its number, so that each run tries the same.
A case was not survived if it took more time or memory than it had, or ended in an error that has no sentence.
A sample of each part is among the tests.
"""

# Of failures that are alike.
SHOWN = 20


def text(results: dict[str, Result], before: str = "") -> str:
    """Return the whole page; parts that have not been run are taken from the page as it was before."""
    parts = {name: _written(part, results[name]) for name, part in PARTS.items() if name in results}
    parts = {name: found for name in PARTS if (found := parts.get(name) or _kept(PARTS[name], before)) is not None}
    table = "\n".join(["| what | cases | not survived |", "| --- | ---: | ---: |", *(row for row, _ in parts.values())])
    return "\n".join([HEAD, table, "", *(section for _, section in parts.values())])


def _written(part: Part, result: Result) -> tuple[str, str]:
    """Return a part's row of the table and its section."""
    return f"{_link(part)} {_cases(result)} | {len(result.failures):,} |", _section(part, result)


def _kept(part: Part, page: str) -> tuple[str, str] | None:
    """Return a part's row of the table and its section as a page has them, None if it has not."""
    row = next((line for line in page.splitlines() if line.startswith(_link(part))), None)
    head = f"## {part.title}\n"
    if row is None or head not in page:
        return None
    return row, head + page.partition(head)[2].partition("\n## ")[0].rstrip("\n") + "\n"


def _link(part: Part) -> str:
    return f"| [{part.title}](#{part.title.lower().replace(' ', '-')}) |"


def summary(part: Part, result: Result) -> str:
    """Return the part's result for a terminal; failures that are alike are counted together."""
    ended = f"{_cases(result)} cases, {len(result.failures)} not survived, slowest {result.slowest:.1f} s"
    lines = [f"{part.title}: {ended}"]
    lines += [f"  {count:>6} {end}" for end, count in sorted(result.ends.items())]
    alike: dict[str, list[int]] = {}
    for case, what in result.failures:
        alike.setdefault(what.split(": ")[0], []).append(case)
    described = dict(result.failures)
    for what, cases in alike.items():
        lines.append(f"  FAILED {len(cases):>4} {what}, such as")
        lines += [f"    case {case}: {described[case]}" for case in cases[:SHOWN]]
    return "\n".join(lines)


def _section(part: Part, result: Result) -> str:
    told = [f"{sentence.rstrip('.')}." for sentence in part.told.split(". ")]
    memory = "" if part.memory_bytes is None else f" and {part.memory_bytes >> 30} GiB of memory"
    told.append(f"A case has {part.seconds} s{memory}.")
    rows = [f"| {end} | {count:,} |" for end, count in sorted(result.ends.items())]
    rows.append(f"| not survived | {len(result.failures):,} |")
    return "\n".join([f"## {part.title}", "", *told, "", "| end | cases |", "| --- | ---: |", *rows, ""])


def _cases(result: Result) -> str:
    return f"{sum(result.ends.values()) + len(result.failures):,}"
