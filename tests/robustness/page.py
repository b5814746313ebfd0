"""The page of the documentation: what was tried, and how it ended."""

from __future__ import annotations

from robustness.limits import Result
from robustness.part import Part
from robustness.parts import PARTS
from robustness.survival import KINDS, Survived

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
    ends = {end: count for end, count in result.ends.items() if Survived.parse(end) is None}
    rows = [f"| {end} | {count:,} |" for end, count in sorted(ends.items())]
    rows.append(f"| not survived | {len(result.failures):,} |")
    survived = [(parsed, count) for end, count in result.ends.items() if (parsed := Survived.parse(end)) is not None]
    if survived:
        rows.insert(0, f"| survived | {sum(count for _, count in survived):,} |")
        told += ["", *_saved_in_the_end(survived)]
    return "\n".join([f"## {part.title}", "", *told, "", "| end | cases |", "| --- | ---: |", *rows, ""])


def _saved_in_the_end(survived: list[tuple[Survived, int]]) -> list[str]:
    """Return what later steps had, in sentences and by the folder of the function that failed."""

    def share(of: list[tuple[Survived, int]]) -> str:
        whole = sum(count for one, count in of if not {*one.lost}.intersection(KINDS[:3]))
        number = sum(count for _, count in of)
        return f"{whole:,} of {number:,} ({whole / number:.1%})" if number else "none of none"

    optional = share([pair for pair in survived if pair[0].optional])
    unsaid = sum(count for one, count in survived if one.missing and not one.said)
    lines = [
        f"Losses, weights and gradients of every later step are complete after {share(survived)} of these failures;",
        f"of those in parts without which they can be saved, after {optional}.",
        f"Where something is missing, `check` and `ls` say first what failed: not so after {unsaid:,}.",
        "Where there is no run, a line on stderr has to.",
        "A later step is one after that in which something is missing first; names of columns are of what it has.",
        "",
        f"| part | failures | {' | '.join(KINDS)} | missing, and not said |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for place in sorted({one.place for one, _ in survived}):
        own = [pair for pair in survived if pair[0].place == place]
        complete = [sum(count for one, count in own if kind not in one.lost) for kind in KINDS]
        left = sum(count for one, count in own if one.missing and not one.said)
        numbers = [sum(count for _, count in own), *complete, left]
        lines.append(f"| {place} | {' | '.join(f'{number:,}' for number in numbers)} |")
    return lines


def _cases(result: Result) -> str:
    return f"{sum(result.ends.values()) + len(result.failures):,}"
