"""The printer of all commands: the one way to stdout of what comes from a run or a user, and to show progress."""

from __future__ import annotations

import json
import shutil
import sys
import time
from contextlib import contextmanager

from smd_agent.address_secrets import without_secrets
from smd_agent.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# In seconds: what is done sooner needs no progress, and nobody reads faster.
_FIRST_AFTER, _AGAIN_AFTER = 1.0, 0.2
# A screen of its own, which leaves what the terminal has shown before as it was; and back to that.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


def emit(line: str = "") -> None:
    """Print a line; what would act on the terminal, or is not in its character set, is written as in Python."""
    print(_fitting(line))


def emit_all(lines: Iterable[str]) -> None:
    """Print lines, each as soon as it is known."""
    for line in lines:
        emit(line)


def emit_json(content: object) -> None:
    """Print what a command has found as one JSON object; of a dataclass its attributes."""
    emit_all(json.dumps(content, indent=2, default=vars).splitlines())


def facts(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield labels and texts as lines, the texts below each other."""
    for label, text in rows:
        yield f"{label:<{width}}{text}"


def _fitting(line: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return without_secrets(printable(line)).encode(encoding, "backslashreplace").decode(encoding)


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


@contextmanager
def own_screen() -> Iterator[None]:
    """Have a terminal show a screen of its own, and what it has shown before at the end."""
    sys.stdout.write(_ENTER)
    try:
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def draw(lines: Sequence[str]) -> None:
    """Draw the first lines that fit over what the screen shows."""
    columns, rows = shutil.get_terminal_size()
    shown = [_fitting(line)[:columns] for line in lines]
    if len(shown) > rows - 1:
        shown = [*shown[: rows - 2], f"... {len(lines) - rows + 2} more lines"]
    sys.stdout.write(_HOME + "".join(f"{line}{_REST_OF_LINE}\n" for line in shown) + _REST_OF_SCREEN)
    sys.stdout.flush()
