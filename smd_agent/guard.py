"""Fences between our failures and the user's run: report once, go on.

The only file of the library in which a broad `except` is allowed. Standard library only, no logging module, nothing of
the package: the boot imports this file in every interpreter that is armed, and the observer loads it under no name.

Not every exception that arrives inside of our code is ours. A signal handler of the program, such as a watchdog's, runs
between any two instructions of the main thread, so between two of ours, too, and what it raises goes up through our
frames. It must reach the program. The same goes for a function that the program has given to ``sys.settrace`` or
``sys.setprofile``. The interpreter hands each of these the very frame that it was called in, and nobody else is handed
that. What ``PyThreadState_SetAsyncExc`` raises in a thread cannot be told from a failure of ours: it leaves no frame
behind.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from types import CodeType, FrameType
    from typing import Any, ParamSpec, Protocol, TypeVar

    class Domain(Protocol):
        """See ``core.failure_domains``."""

        off: bool

        def failed(self, doing: str, error: Exception) -> None:
            """Take note of a failure."""

    P = ParamSpec("P")
    R = TypeVar("R")

PREFIX = "smd_agent: "

# As in inspect, which is large.
_HAS_VARIABLE_ARGUMENTS = 0x04

strict = False
"""Set by the session from SMD_AGENT_STRICT: a fence lets failures through after it has reported them."""

owed: list[tuple[Domain, str, Exception]] = []
"""Failures that were caught next to the recursion limit, and are told in the next step that is saved."""

# A pipe that can take anything takes a page at once.
_PAGE = 4096
_KEPT = 50
_PATIENCE_MS = 200


class _Lines:
    """Lines of this process, and of those that it was forked from.

    said: keys of those that are said once.
    unsaid: those that stderr had no room for.
    waited: whether stderr has been waited for.
    """

    def __init__(self) -> None:
        self.said: set[object] = set()
        self.unsaid: list[str] = []
        self.waited = False


lines = _Lines()


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
        if "://" in line:
            from smd_agent.address_secrets import without_secrets

            line = without_secrets(line)
        lines.unsaid.append(f"{PREFIX}{line}\n")
        del lines.unsaid[:-_KEPT]
        while lines.unsaid and _has_room(stream):
            text = lines.unsaid.pop(0)
            stream.write(text if len(text) <= _PAGE // 4 else _shortened(text))
            stream.flush()
    except Exception as error:
        if is_foreign(error):
            raise
        # There is no second place to report to: stdout belongs to the program.


def _has_room(stream: Any) -> bool:
    """True if a stream takes a page now; the first time in a process that it does not, it is given a moment."""
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
    if poll.poll(0 if lines.waited else _PATIENCE_MS):
        return True
    lines.waited = True
    return False


def _shortened(text: str) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= _PAGE else data[: _PAGE - 5].decode(errors="ignore") + " ...\n"


def say_once(key: Hashable, line: str) -> None:
    """Write one line to stderr, once for each key in this process and those forked from it."""
    if key not in lines.said:
        lines.said.add(key)
        say(line)


def say_later(key: Hashable, line: str) -> None:
    """The same with the next line that is written: next to the recursion limit there is no room to write."""
    if key not in lines.said:
        lines.said.add(key)
        lines.unsaid.append(f"{PREFIX}{line}\n")


def describe(error: BaseException) -> str:
    """Return `Type: text` of an error, surviving an error whose text cannot be made."""
    try:
        text = str(error)
    except Exception:
        text = "its text cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def fence(what: str, again: bool = False) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """Make a function of ours safe to call from the user's code, which stands in no domain of ``core.failure_domains``.

    An Exception in it is reported once for each fence, as `<what> failed (<Type>: <text>)`, and None returned. With
    `again` the function is called a second time before that: what it does may have been begun, or done, already.
    SystemExit, KeyboardInterrupt and whatever else is no Exception pass, and so does what a signal handler of the
    program raises in the meantime; under `strict` all pass, after the report.
    """

    def build(function: Callable[P, R]) -> Callable[P, R | None]:
        def fenced(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if is_foreign(error):
                    raise
                found: list[R] = []
                failure = attempt(lambda: found.append(function(*args, **kwargs))) if again and not strict else error
                if failure is None:
                    return found[0]
                say_once(fenced, f"{what} failed ({describe(failure)})")
                if strict:
                    raise
                return None

        return _named(fenced, function)

    return build


def fenced(
    function: Callable[P, R], domain: Domain, doing: str, then: Callable[..., object] | None, again: bool
) -> Callable[P, R | None]:
    """Make a function of a failure domain safe to call from the user's code.

    An Exception in it is handed to the domain; then `then` is called with the same arguments and None returned, as it
    is at once where the domain is switched off. With `again` the function is called a second time before that. Other
    exceptions pass, and so does what a signal handler of the program raises; under `strict` all pass, after that.
    """

    def fenced(*args: P.args, **kwargs: P.kwargs) -> R | None:
        if domain.off:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if is_foreign(error):
                raise
            found: list[R] = []
            failure = attempt(lambda: found.append(function(*args, **kwargs))) if again and not strict else error
            if failure is None:
                # What the first try has left undone may be missing.
                tell(domain, doing, error)
                return found[0]
            tell(domain, doing, failure)
            if strict:
                raise
        if then is not None:
            failure = attempt(lambda: then(*args, **kwargs))
            if failure is not None:
                tell(domain, doing, failure)
        return None

    return _named(fenced, function)


def tell(domain: Domain, doing: str, error: Exception) -> None:
    """Hand a failure to its domain; next to the recursion limit, which leaves no room for it, it is ``owed``."""
    try:
        domain.failed(doing, error)
    except RecursionError:
        owed.append((domain, doing, error.with_traceback(None)))


def tell_owed() -> None:
    """Hand failures to their domains that there was no room for."""
    while owed:
        domain, doing, error = owed[0]
        domain.failed(doing, error)
        del owed[0]


def _named(fenced: Callable[P, R], function: Callable[..., object]) -> Callable[P, R]:
    # functools.wraps would do, at the price of importing functools in every armed interpreter.
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(fenced, name, getattr(function, name, None))
    return fenced


def attempt(action: Callable[[], object]) -> Exception | None:
    """Run an action and return the Exception of ours that it raised, None when it raised none."""
    try:
        action()
    except Exception as error:
        if is_foreign(error):
            raise
        return error
    return None


def is_foreign(error: BaseException) -> bool:
    """True if an exception comes out of a signal handler, or out of a function that traces or profiles.

    ``error`` is as it was caught: only what was called since then counts.
    """
    try:
        return _is_foreign(error)
    except RecursionError:
        # There is no room left to ask.
        return not isinstance(error, RecursionError)


def _is_foreign(error: BaseException) -> bool:
    at = error.__traceback__
    handlers: set[CodeType] | None = None
    while at is not None:
        frame = at.tb_frame
        if _was_called_by_interpreter(frame):
            return True
        if handlers is None:
            handlers = _handlers()
        # What has overwritten its arguments.
        if frame.f_code in handlers:
            return True
        at = at.tb_next
    return False


def _was_called_by_interpreter(frame: FrameType) -> bool:
    """True if the arguments are a signal's number and the calling frame, or that frame and the name of an event."""
    caller = frame.f_back
    if caller is None:
        return False
    values = _arguments(frame)
    for place, value in enumerate(values):
        if value is caller:
            before, after = values[place - 1 : place], values[place + 1 : place + 2]
            if any(isinstance(one, int) for one in before) or any(isinstance(one, str) for one in after):
                return True
    return False


def _arguments(frame: FrameType) -> list[object]:
    code = frame.f_code
    has_more = code.co_flags & _HAS_VARIABLE_ARGUMENTS
    if not code.co_argcount and not has_more:
        # It may be a class's body, whose names may stand in any object.
        return []
    names, local = code.co_varnames, frame.f_locals
    values = [local.get(name) for name in names[: code.co_argcount]]
    if has_more:
        more = local.get(names[code.co_argcount + code.co_kwonlyargcount])
        values += more if isinstance(more, tuple) else ()
    return values


def _handlers() -> set[CodeType]:
    """The code of all functions that handle a signal in this process."""
    signal = sys.modules.get("signal")
    if signal is None:
        # Who has not imported it has given it nothing.
        return set()
    codes = [_code(signal.getsignal(number)) for number in range(1, signal.NSIG)]
    return {code for code in codes if code is not None}


def _code(handler: object) -> CodeType | None:
    from types import FunctionType, MethodType

    if isinstance(handler, MethodType):
        handler = handler.__func__
    if not isinstance(handler, FunctionType):
        handler = type(handler).__call__
    return handler.__code__ if isinstance(handler, FunctionType) else None
