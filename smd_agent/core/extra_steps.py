"""The steps that are saved beside those of a run's rules, because somebody asks for them while it goes on."""

from __future__ import annotations

from typing import NamedTuple

from smd_agent.core.clock import NEVER
from smd_agent.core.modes import ModeKeys

WHOLE = "whole steps"
"""Stands among names of collections for every tensor, saved as it is."""


class Span(NamedTuple):
    """Steps of a mode, the first and the last of them, and the collections that they save."""

    mode: ModeKeys
    first: int
    last: int
    names: frozenset[str]


class ExtraSteps:
    """The spans of one run that go on."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    @property
    def names(self) -> set[str]:
        """All collections that are saved in some span."""
        return set().union(*(span.names for span in self.spans))

    def due(self, mode: ModeKeys, step: int) -> frozenset[str]:
        """The collections that are saved at a step of a mode though no rule says so."""
        if not self.spans:
            return frozenset()
        found = (one.names for one in self.spans if one.mode is mode and one.first <= step <= one.last)
        return frozenset().union(*found)

    def next_due(self, mode: ModeKeys, step: int) -> int:
        """The first step of a mode, from this one on, in a span, or behind one that ends with it; ``NEVER`` if none."""
        # The step behind a span is looked at, too: it tells that the span is over.
        known = (one for one in self.spans if one.mode is mode and step <= one.last + 1)
        return min((max(step, one.first) for one in known), default=NEVER)
