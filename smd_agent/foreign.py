"""Whose exception it is that arrives inside of our code: ours, or of what the interpreter has called there.

A signal handler of the program, such as a watchdog's, runs between any two instructions of the main thread, so between
two of ours, too, and what it raises goes up through our frames. It must reach the program. The same goes for a function
that the program has given to ``sys.settrace`` or ``sys.setprofile``. The interpreter hands each of these the very frame
that it was called in, and nobody else is handed that.

What ``PyThreadState_SetAsyncExc`` raises in a thread cannot be told from a failure of ours: it leaves no frame behind.

Standard library only: the boot imports this file in every interpreter that is armed.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType

# As in inspect, which is large.
_HAS_VARIABLE_ARGUMENTS = 0x04


def is_foreign(error: BaseException) -> bool:
    """Whether an exception comes out of a signal handler, or out of a function that traces or profiles.

    ``error`` is as it was caught: only what was called since then counts.
    """
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
    """Whether the arguments are a signal's number and the calling frame, or that frame and the name of an event."""
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
