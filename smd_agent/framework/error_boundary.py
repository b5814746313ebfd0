"""Failures of ours in functions that stand between the program and a library, which is called all the same.

Whatever is raised in an unseen function or below it comes out of the outermost one, which asks here whose it is. Ours
is what was raised in a function of ours that is not unseen, or by an unseen function's own work, unless it comes out of
a signal handler of the program. It is told in one line, see ``core.failure_domains``, and the program gets what the
function that is stood for returns. That function is called once: an unseen function keeps what it has returned in a
variable named ``result``.

Nothing of this costs anything as long as nothing is raised.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import CodeType, ModuleType, TracebackType
from typing import Any

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.interpreter.failed_calls import is_own_work
from smd_agent.interpreter.hidden_frames import MARK, is_unseen, leave_traceback, unseen

# Folders, with a separator at their end, and files.
_ours: tuple[str, ...] = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,)
# Between a ``with`` of ours and what it enters.
_CONTEXTS = contextlib.contextmanager.__code__.co_filename
_ABSENT = object()
_DOING = "looking at the training"


class Fallback:
    """The result that the program gets after a failure of ours.

    Args:
        returned: what the function that is stood for has returned; ``_ABSENT`` if it was not called.
        raised: what it has raised.

    Attributes:
        is_call: whether that function is yet to be called. Who calls it without ``of`` spares two places on the stack.
    """

    def __init__(self, returned: object, raised: BaseException | None) -> None:
        self.is_call = raised is None and returned is _ABSENT
        self._returned = returned
        self._raised = raised

    @unseen
    def of(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result or exception of the original, which is called now with these arguments if it was not."""
        if self._raised is not None:
            raise self._raised
        return original(*args, **kwargs) if self._returned is _ABSENT else self._returned


def own_failure(error: BaseException) -> Fallback | None:
    """Tell of a failure of ours, and what is to be done instead; None for what the program has to see.

    For the outermost unseen function, which then has to ``raise`` it, with nothing behind the word. Of what is the
    program's the frames of unseen functions are left out.
    """
    try:
        return _own_failure(error)
    except RecursionError:
        last, at = None, error.__traceback__
        # As below, but for calls: next to the limit there is no room for any.
        while at is not None and at.tb_frame.f_code.co_filename.endswith(MARK):
            last, at = at, at.tb_next
        if last is None or guard.strict or not isinstance(error, RecursionError):
            return None
        if at is not None and not at.tb_frame.f_code.co_filename.startswith(_ours):
            return None
        guard.owed.append((STEPS, _DOING, error.with_traceback(None)))
        return Fallback(last.tb_frame.f_locals.get("result", _ABSENT), None)


def take_for_ours(patch: ModuleType, framework: str) -> None:
    """Take failures of another package that adds a framework for ours, as far as they are not the framework's own.

    Args:
        patch: the module that patches it. All of its package is ours, unless the framework lies there.
        framework: its import name.
    """
    global _ours
    package = sys.modules.get(patch.__package__ or "")
    is_of_framework = patch.__name__.partition(".")[0] == framework
    if package is None or is_of_framework:
        _ours += (patch.__file__ or patch.__name__,)
    else:
        _ours += tuple(os.path.join(folder, "") for folder in package.__path__)


def _own_failure(error: BaseException) -> Fallback | None:
    innermost = _innermost(error.__traceback__)
    if innermost is None or not isinstance(error, Exception) or not _is_own(innermost) or guard.is_foreign(error):
        leave_traceback(error)
        return None
    frame = innermost.tb_frame
    if guard.strict and _passed_a_fence(innermost):
        # It has been told.
        return None
    guard.tell(STEPS, _DOING, error)
    if guard.strict:
        return None
    return Fallback(frame.f_locals.get("result", _ABSENT), _raised_before(error, frame))


def _innermost(at: TracebackType | None) -> TracebackType | None:
    """The last of the unseen functions that a traceback begins with."""
    found = None
    while at is not None and is_unseen(at.tb_frame.f_code):
        found, at = at, at.tb_next
    return found


def _is_own(unseen_at: TracebackType) -> bool:
    """True if a failure that came to an unseen function is ours; else it is of what the function stands for."""
    following = unseen_at.tb_next
    while following is not None and following.tb_frame.f_code.co_filename == _CONTEXTS:
        following = following.tb_next
    if following is not None:
        return _is_ours(following.tb_frame.f_code)
    # What it was given to call may be a function without a frame; what it raises is what the program is to get.
    return is_own_work(unseen_at)


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_ours)


def _passed_a_fence(at: TracebackType | None) -> bool:
    while at is not None:
        if at.tb_frame.f_code.co_filename == guard.__file__:
            return True
        at = at.tb_next
    return False


def _raised_before(error: BaseException, frame: object) -> BaseException | None:
    """The exception of the function that is stood for, when we failed on its way out."""
    before = error.__context__
    while before is not None:
        at = before.__traceback__
        while at is not None and at.tb_frame is not frame:
            at = at.tb_next
        last = _innermost(at)
        if last is not None and not _is_own(last):
            before.__traceback__ = last.tb_next
            return before
        before = before.__context__
    return None
