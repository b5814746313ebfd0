"""Unusual tensors of a run, in a line for each kind, and parameters that are not trained."""

from __future__ import annotations

from smd_agent.analysis.course import FADING, FINDINGS, GROWING, NOT_FINITE, SAME, Course
from smd_agent.analysis.trained import FORGOTTEN, FROZEN, NO_GRADIENT
from smd_agent.cli.table import WIDTH
from smd_agent.printable import count_of, shortened_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smd_agent.analysis.overview import Overview

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


def untrained(trained: Mapping[str, str]) -> dict[str, list[str]]:
    """The parameters that are not trained, by what is the matter; ``trained`` says it of every parameter."""
    found = {
        state: [name for name, own in trained.items() if own == state] for state in (FORGOTTEN, NO_GRADIENT, FROZEN)
    }
    return {state: names for state, names in found.items() if names}


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
