"""Decorator of what puts the capture of a framework in place: whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from smd_agent import guard, session
from smd_agent.core.overhead import overhead
from smd_agent.framework import replaced_functions

P = ParamSpec("P")


def whole_or_off(framework: str) -> Callable[[Callable[P, object]], Callable[P, None]]:
    """Make a function that puts the capture of a framework in place, and undoes that where it fails.

    It is tried twice. After the second failure the framework is not captured, and the failure is raised.
    """

    def build(function: Callable[P, object]) -> Callable[P, None]:
        def whole(*args: P.args, **kwargs: P.kwargs) -> None:
            before: list[frozenset[int]] = []

            def put_in_place() -> None:
                if not before:
                    before.append(replaced_functions.standing())
                function(*args, **kwargs)

            failure: Exception | None = None
            with overhead.spending():
                for _ in range(2):
                    failure = guard.attempt(put_in_place)
                    if failure is None:
                        return
                    if before:
                        replaced_functions.undo(before[0])
            session.switch_off(framework)
            raise failure  # type: ignore[misc]

        return whole

    return build
