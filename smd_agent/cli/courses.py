"""Tensors over the steps: those that are unusual in a line for each kind, and a table with a line for each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

from smd_agent.analysis.trained_parameters import FORGOTTEN, FROZEN, NO_GRADIENT, untrained
from smd_agent.analysis.unusual_tensors import FADING, FINDINGS, GROWING, NOT_FINITE, SAME, Course, Overview
from smd_agent.cli.output import WIDTH, few_text, share_text, sparkline
from smd_agent.printable import count_of, number_text, shortened_within

_LONGEST_NAME = 40


def finding_lines(overview: Overview) -> Iterator[str]:
    """Say what is unusual, the most unusual first; where steps were left out, how many were looked at."""
    if overview.looked_at < overview.steps or overview.unread:
        large = f", not at {count_of(len(overview.unread), 'large tensor')}" if overview.unread else ""
        yield f"Looked   at {overview.looked_at} of {count_of(overview.steps, 'step')}{large}"
    if overview.courses and not any(course.finding for course in overview.courses):
        yield f"Unusual  nothing in {count_of(len({course.name for course in overview.courses}), 'tensor')}"
    names = {course.name for course in overview.courses}
    for finding in FINDINGS:
        found = sorted((one for one in overview.courses if one.finding == finding), key=lambda one: one.unusual)
        if found:
            own = list(dict.fromkeys(course.name for course in found))
            line = f"{finding:<8} {len(own)} of {count_of(len(names), 'tensor')}{_where(finding, found)}: "
            yield line + _listed(own, WIDTH - len(line))


def trained_lines(trained: Mapping[str, str]) -> Iterator[str]:
    """Say which parameters are not trained, and why, in a line for each reason."""
    reasons = {FORGOTTEN: "in no optimizer", NO_GRADIENT: "without a gradient", FROZEN: "frozen"}
    found = untrained(trained)
    left = len(trained) - sum(map(len, found.values()))
    start = f"Trained  {left} of {count_of(len(trained), 'parameter')}; "
    for state, names in found.items():
        line = f"{start}{len(names)} {reasons[state]}: "
        yield line + _listed(names, WIDTH - len(line))
        start = " " * len("Trained  ")


def _where(finding: str, courses: Sequence[Course]) -> str:
    if finding == NOT_FINITE:
        first = min(course.not_finite_from for course in courses if course.not_finite_from is not None)
        on = " on" if all(course.stays_not_finite and len(course.points) > 1 for course in courses) else ""
        return f", from step {first} on" if on else f", first at step {first}"
    if finding == SAME:
        counts = {len(course.points) for course in courses}
        return f", at all {counts.pop()} steps" if len(counts) == 1 else ", at all steps"
    if finding in (GROWING, FADING):
        return f", up to {times(courses[0].ratio)}"
    return ""


def times(ratio: float | None) -> str:
    """Write how many times as large something has become."""
    if ratio is None:
        return ""
    return f"x{ratio:.3g}" if ratio >= 1 else f"1/{1 / ratio:.3g}"


def _listed(names: Sequence[str], width: int) -> str:
    """Return as many names as fit, at least one."""
    text = shortened_within(names[0], _LONGEST_NAME)
    for number, name in enumerate(names[1:], 2):
        longer = f"{text}, {shortened_within(name, _LONGEST_NAME)}"
        if len(longer) > width - len(", ...") * (number < len(names)):
            return f"{text}, ..."
        text = longer
    return text


MOST_LINES = 30

_TREND = 12
# Where the mode takes room that the name needs.
_SHORT_TREND = 8
_COLUMNS = {"TREND": _TREND, "FIRST": 8, "LAST": 8, "ZERO": 4, "DEAD": 4, "SAT": 4, "NAN": 4, "INF": 4, "NOTE": 5}
_LEFT = ("TENSOR", "MODE", "TREND", "NOTE")
_NOTES = {"NaN/Inf": "", "Same": "same", "Zeros": "zeros", "Rises": "rises"}
_LONGEST = 60


def course_lines(courses: Sequence[Course], with_mode: bool, most: int = MOST_LINES) -> Iterator[str]:
    """Yield a header, a line for each course, and what its numbers are.

    Args:
        courses: one or more, in the order of the lines.
        with_mode: whether to name the mode of each. Shares of channels stand there where some are.
        most: so many lines; the rest is counted.
    """
    last = [course.points[-1] for course in courses]
    absent = {
        name
        for name, share in (("DEAD", "dead_share"), ("SAT", "saturated_share"))
        if not any(getattr(point, share) for point in last)
    }
    columns = {name: width for name, width in _COLUMNS.items() if name not in absent}
    if not absent:
        columns["TREND"] = _SHORT_TREND
    if with_mode:
        columns = {"MODE": max(len(course.mode.name) for course in courses), **columns, "TREND": _SHORT_TREND}
    room = _room() - sum(columns.values()) - len(columns)
    width = min(max(len("TENSOR"), *(len(course.name) for course in courses)), room, _LONGEST)
    columns = {"TENSOR": width, **columns}
    yield _line(dict(zip(columns, columns, strict=True)), columns)
    shown = courses if len(courses) <= most + 1 else courses[:most]
    for course in shown:
        yield _line(_cells(course, columns), columns)
    if len(courses) > len(shown):
        yield f"... and {len(courses) - len(shown)} more: --all lists them"
    yield from _legend(shown)


def _room() -> int:
    """In characters, of a line: as many as the terminal has, at least those that every one has."""
    # A variable that was made for another terminal does not count.
    return max(shutil.get_terminal_size().columns, WIDTH) if sys.stdout.isatty() else WIDTH


def _cells(course: Course, columns: dict[str, int]) -> dict[str, str]:
    points = course.points
    last = points[-1]
    bad = next((point for point in reversed(points) if not point.finite), last)
    return {
        "TENSOR": shortened_within(course.name, columns["TENSOR"]),
        "MODE": course.mode.name,
        "TREND": sparkline([point.size if point.finite else None for point in points], columns["TREND"]),
        "FIRST": number_text(points[0].size),
        "LAST": number_text(last.size),
        "ZERO": share_text(last.zero_share),
        "DEAD": share_text(last.dead_share),
        "SAT": share_text(last.saturated_share),
        "NAN": few_text(bad.nans),
        "INF": few_text(bad.infs),
        "NOTE": _note(course),
    }


def _note(course: Course) -> str:
    if course.finding is None:
        return course.trend
    return _NOTES.get(course.finding, times(course.ratio))


def _line(cells: dict[str, str], columns: dict[str, int]) -> str:
    texts = (cells[name].ljust(size) if name in _LEFT else cells[name].rjust(size) for name, size in columns.items())
    return " ".join(texts).rstrip()


def _legend(courses: Sequence[Course]) -> Iterator[str]:
    larger = sorted({course.of for course in courses} - {"value", ""})
    steps = {len(course.points) for course in courses}
    over = f"over {count_of(steps.pop(), 'step')}" if len(steps) == 1 else "over the steps"
    if larger:
        yield f"{over}; tensors of several elements by their {', '.join(larger)}"
    else:
        yield over
