"""Which releases of each framework are captured, by the name it is imported by."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """Releases that are supported.

    oldest: the first of them.
    newest: the last of them; empty where there is none yet.
    """

    oldest: str
    newest: str = ""

    def holds(self, version: str) -> bool:
        """Whether a release is one of them; ``newest`` stands for all that begin as it does."""
        own = numbers(version)
        last = numbers(self.newest)
        return own >= numbers(self.oldest) and (not last or own[: len(last)] <= last)

    def __str__(self) -> str:
        return f"{self.oldest} to {self.newest}" if self.newest else f"from {self.oldest}"


SUPPORTED = {
    "torch": Range("2.1"),
    "tensorflow": Range("2.13"),
    "keras": Range("2.13"),
    "tf_keras": Range("2.15"),
    "xgboost": Range("1.7"),
    "mxnet": Range("1.8", "1.9"),
}


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: ``2.13.0+cpu`` is (2, 13, 0)."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            found.append(int(digits))
        if digits != part or not digits:
            break
    return tuple(found)
