"""The lines that commands print: the one way to stdout of what comes from a run or a user, and to say how far it is."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

from smd_agent.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# In seconds: what is done sooner needs no progress, and nobody reads faster.
_FIRST_AFTER, _AGAIN_AFTER = 1.0, 0.2


def emit(line: str = "") -> None:
    """Print a line; what would act on the terminal, or is not in its character set, is written as in Python."""
    print(fitting(line))


def fitting(line: str) -> str:
    """Return a line as ``emit`` prints it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return printable(line).encode(encoding, "backslashreplace").decode(encoding)


@contextmanager
def progress(words: str) -> Iterator[Callable[[int, int], None]]:
    """Say on a terminal's stderr how far something is that takes longer than a second; the line goes away at its end.

    Args:
        words: with two places ``{}``, for how many are done and how many there are.
    """
    shown, due = "", time.monotonic() + _FIRST_AFTER

    def tell(done: int, total: int) -> None:
        nonlocal shown, due
        now = time.monotonic()
        if now >= due and sys.stderr.isatty():
            shown, due = words.format(done, total), now + _AGAIN_AFTER
            sys.stderr.write(f"\r{shown}")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write(f"\r{' ' * len(shown)}\r")
            sys.stderr.flush()
