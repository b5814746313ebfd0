"""Fences of functions that look at the program's tensors, and call nothing of the program's."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from smd_agent.core.domains import Domain
from smd_agent.pytorch.own_operations import apart

P = ParamSpec("P")
R = TypeVar("R")


def fence(doing: str, domain: Domain, again: bool = False) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """``Domain.fence``; what the function computes, it computes ``apart``."""

    def build(function: Callable[P, R]) -> Callable[P, R | None]:
        return domain.fence(doing, again=again)(apart(function))

    return build
