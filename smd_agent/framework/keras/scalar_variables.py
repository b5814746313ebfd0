"""Variables of one number each, as the libraries have them that Keras computes with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class ScalarVariables(Protocol):
    """The variables of one library."""

    def can_be_read(self) -> bool:
        """True if variables have values now."""

    def plain(self, variable: Any) -> Any | None:
        """The library's variable of one number that this is, or is around.

        None where to read it would wait for an accelerator or for other replicas, and where it is something else.
        """

    def reader(self, variables: Sequence[Any]) -> Callable[[], list[float]]:
        """A function that gives the numbers that plain variables have when it is called."""

    def rounding(self, variable: Any) -> float:
        """The largest part of a number by which a plain variable rounds it."""
