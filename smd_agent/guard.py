"""Fences between our failures and the user's run: report once, switch off, go on.

The only file of the library in which a broad `except` is allowed. Standard library only, no logging module:
the boot imports this file in every interpreter that is armed.
"""

from __future__ import annotations

import os
import stat
import sys

from smd_agent.foreign import is_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

PREFIX = "smd_agent: "

strict = False
"""Set by the session from SMD_AGENT_STRICT: a fence lets failures through after it has reported them."""

_said: set[object] = set()


_unsaid: list[str] = []
_waited = False

# A pipe that can take anything takes a page at once.
_PAGE = 4096
_KEPT = 50
_PATIENCE_MS = 200


def say(line: str) -> None:
    """Write one prefixed line to stderr; do nothing when stderr is missing, closed or broken.

    A pipe that is full is not waited for: then the line is kept until the next one, as the newest 50 are.
    """
    try:
        stream = sys.stderr
        if stream is None:
            return
        line = " ".join(str(line).splitlines())
        if not line.isprintable():
            from smd_agent.printable import printable

            line = printable(line)
        _unsaid.append(f"{PREFIX}{line}\n")
        del _unsaid[:-_KEPT]
        while _unsaid and _has_room(stream):
            text = _unsaid.pop(0)
            stream.write(text if len(text) <= _PAGE // 4 else _shortened(text))
            stream.flush()
    except Exception as error:
        if is_foreign(error):
            raise
        # There is no second place to report to: stdout belongs to the program.


def _has_room(stream: Any) -> bool:
    """Whether a stream takes a page now; the first time in a process that it does not, it is given a moment."""
    global _waited
    try:
        descriptor = stream.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return True
        import select

        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
    except Exception as error:
        if is_foreign(error):
            raise
        # It is an object of the program's, or there is nothing to ask.
        return True
    if poll.poll(0 if _waited else _PATIENCE_MS):
        return True
    _waited = True
    return False


def _shortened(text: str) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= _PAGE else data[: _PAGE - 5].decode(errors="ignore") + " ...\n"


def say_once(key: Hashable, line: str) -> None:
    """Write one line to stderr, once for each key in this process and those forked from it."""
    if key not in _said:
        _said.add(key)
        say(line)


def describe(error: BaseException) -> str:
    """Return `Type: text` of an error, surviving an error whose text cannot be made."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def fence(
    what: str, *, on_failure: Callable[[], object] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Make a function of ours safe to call from the user's code.

    An Exception in it is reported once for each fence, as `<what> failed (<Type>: <text>); capture is off for
    the rest of this run`; then `on_failure` is called and None returned. SystemExit, KeyboardInterrupt and
    whatever else is no Exception pass, and so does what a signal handler of the program raises in the meantime; under
    `strict` all pass, after the report.
    """

    def build(function: Callable[P, R]) -> Callable[P, R | None]:
        def fenced(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if is_foreign(error):
                    raise
                failed(what, error, on_failure, fenced)
                if strict:
                    raise
                return None

        # functools.wraps would do, at the price of importing functools in every armed interpreter.
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(fenced, name, getattr(function, name, None))
        return fenced

    return build


def failed(
    what: str, error: Exception, on_failure: Callable[[], object] | None = None, key: Hashable | None = None
) -> None:
    """Report a failure of ours as a fence does, once for each key (by default what failed), and call `on_failure`.

    Under `strict` nothing is called.
    """
    say_once(key or ("failed", what), f"{what} failed ({describe(error)}); capture is off for the rest of this run")
    if not strict:
        _switch_off(on_failure)


def _switch_off(on_failure: Callable[[], object] | None) -> None:
    if on_failure is None:
        return
    try:
        on_failure()
    except Exception as error:
        if is_foreign(error):
            raise
        say_once(("switching off", on_failure), f"switching off failed ({describe(error)})")


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run an action and return the Exception of ours that it raised, None when it raised none."""
    try:
        action()
    except Exception as error:
        if is_foreign(error):
            raise
        return error
    return None
