"""Whose steps are saved where several threads train at once: those of one of them, because a step is one thread's.

Nothing of another thread's model may be read either: its backward pass replaces gradients without the interpreter lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import get_ident

from smd_agent import guard
from smd_agent.pytorch.tracing import captures

_LINE = "several threads train at once: only the steps of one of them are saved, and what it computes in them"


class TrainingThreads:
    """The threads that call models in steps that are saved. Asked in saved steps only.

    As long as one follows the other, each has its steps saved. Once two of them are seen in one step, the one that
    opened it is the only one until it ends.

    Args:
        on_several: called, in whichever thread, when they are seen.

    Attributes:
        several: whether they have been seen.
    """

    def __init__(self, on_several: Callable[[], object]) -> None:
        self._opener = 0
        self._callers: set[int] = set()
        self._on_several = on_several
        self.several = False

    @property
    def is_opener(self) -> bool:
        """True if this thread has opened the step."""
        return get_ident() == self._opener

    def may_begin(self) -> bool:
        """True if this thread may end the open step and open another one."""
        if captures.under_way:
            return False
        if self.several and not self.is_opener and alive(self._opener):
            return False
        self.several = self.several and self.is_opener
        return True

    def begin(self) -> None:
        """This thread opens a step."""
        self._opener = get_ident()
        self._callers.add(self._opener)

    def call(self) -> bool:
        """This thread calls a model in the open step, from no other model; whether that is saved."""
        if not self.is_opener:
            if alive(self._opener):
                self._callers.add(get_ident())
                self._found_several()
                return False
            self.begin()
        return True

    def calls_models(self) -> None:
        """This thread calls models by itself, perhaps in a training of its own."""
        self._callers.add(get_ident())

    def trains_beside(self) -> bool:
        """True if this thread trains beside the one whose steps are saved; to be asked in any step."""
        me = get_ident()
        return me != self._opener and me in self._callers and alive(self._opener)

    def left_out(self) -> bool:
        """True if what this thread computes is none of the step's.

        A thread that calls no model by itself may be one that helps the opener, such as those of autograd. Nor is what
        a graph is captured of.
        """
        if captures.under_way:
            return True
        me = get_ident()
        if me == self._opener or me not in self._callers or not alive(self._opener):
            return False
        self._found_several()
        return True

    def _found_several(self) -> None:
        if not self.several:
            self.several = True
            self._on_several()
        guard.say_once("training threads", _LINE)


def alive(ident: int) -> bool:
    """True if a thread of Python's still runs."""
    return any(thread.ident == ident for thread in threading.enumerate())


def is_of_this_thread(ident: int) -> bool:
    """True if what a thread has used last may be read by this one."""
    return ident == get_ident() or not alive(ident)
