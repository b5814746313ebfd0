"""Lines that runs of one script have printed, and where those of the run with the agent differ."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smd_agent.guard import PREFIX
from smd_agent.printable import shortened
from smd_agent.verify.first_difference import Difference

# The program may have begun a line when the agent writes one.
_OURS = re.compile(re.escape(PREFIX.encode()) + rb"[^\n]*\n")
# A number with its point, an identifier in hexadecimal digits and a time of day are one word each.
_WORD = re.compile(rb"((?:[^\s=,;|()\[\]{}<>'\"]|(?<=\d),(?=\d))+)")
# How long something took, which two runs may have in common by chance: 1s, 0.5min, 52ms/step.
_TIME = re.compile(rb"\d+(?:\.\d+)?(?:(?:n|u|\xc2\xb5|\xce\xbc|m)?s|min|h)(?:/\w+)?")
_PADDING = re.compile(rb"[ \t]+")
_LONGEST = 120


@dataclass(frozen=True)
class Printed:
    """The lines that the runs have printed on one stream.

    Args:
        lines: how many the first run has.
        ours: how many lines of the agent's own were left out.
        varying: numbers of lines, from 1, that differ between the runs without the agent.
        own: the first of them as both have it.
        counted: the runs without the agent have the same number of lines.
        difference: where the run with the agent differs from them otherwise.
    """

    lines: int
    ours: int
    varying: tuple[int, ...]
    own: Difference | None
    counted: bool
    difference: Difference | None


def compare(stream: str, plain: bytes, again: bytes, agent: bytes) -> Printed:
    """Compare what two runs without the agent and one with it have printed.

    Of a line that differs between the first two, the words are compared that are the same in both. Where these have
    not the same number of lines, nothing is compared.
    """
    ours = len(_OURS.findall(agent))
    here, there, with_agent = (_OURS.sub(b"", text).split(b"\n") for text in (plain, again, agent))
    counted = len(here) == len(there)
    varying = [number for number, (one, other) in enumerate(zip(here, there, strict=False)) if one != other]
    if not counted:
        varying = varying[:1] or [min(len(here), len(there))]
    own = _difference(stream, here, there, varying[0]) if varying else None
    found = None
    if counted:
        both = zip(here, there, with_agent, strict=False)
        other = (number for number, texts in enumerate(both) if not _same(*texts))
        number = next(other, None)
        if number is None and len(here) != len(with_agent):
            number = min(len(here), len(with_agent))
        found = None if number is None else _difference(stream, here, with_agent, number)
    return Printed(_count(plain), ours, tuple(number + 1 for number in varying), own, counted, found)


def _difference(stream: str, here: list[bytes], there: list[bytes], number: int) -> Difference:
    return Difference(f"line {number + 1} of {stream}", _shown(here, number), _shown(there, number))


def _same(one: bytes, other: bytes, third: bytes) -> bool:
    """True if the third is as the first two are alike."""
    if one == other:
        return third == one
    parts = [_WORD.split(_PADDING.sub(b" ", text)) for text in (one, other, third)]
    if len({len(texts) for texts in parts}) > 1:
        return True
    both = (texts for texts in zip(*parts, strict=True) if texts[0] == texts[1])
    return all(mine == third or bool(_TIME.fullmatch(mine)) for mine, _, third in both)


def _shown(lines: list[bytes], number: int) -> str:
    if number >= len(lines) or (number == len(lines) - 1 and not lines[number]):
        return "no such line"
    return repr(shortened(lines[number].decode(errors="replace"), _LONGEST))


def _count(text: bytes) -> int:
    return len(text.splitlines())
