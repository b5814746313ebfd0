"""A failure of the agent's, as it is noted in the run that it happened in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Failure:
    """A failure: what failed, when, and what it has cost.

    Attributes:
        domain: what is saved that may be missing, in words, such as ``losses``; see ``core.failure_domains``.
        doing: what failed, in words.
        error: the type of the last exception and its text.
        step: number over all modes of the first step in which it failed; -1 before the first.
        last: the same of the last one.
        mode: of the first one, such as ``TRAIN``; empty before the first.
        times: how often it failed.
        off: whether the domain is saved no more since.
    """

    domain: str
    doing: str
    error: str
    step: int
    last: int
    mode: str = ""
    times: int = 1
    off: bool = False
