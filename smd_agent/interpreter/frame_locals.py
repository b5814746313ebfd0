"""Variables of functions that are running, or have been left by an exception (``frame.f_locals``).

Up to CPython 3.12 the frame of a function keeps a dict of them once it was asked, and with that what they hold, for as
long as it lives: it is emptied here. ``locals()`` is the same dict, which the program may have kept: it must neither be
emptied nor have the values of today, so a function that may have called that is not asked. From 3.13 on what is asked
for is a view of the variables themselves, which stays as it is. What stands in a module's frame is the module's own
dict.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FrameType

# CO_NEWLOCALS and CO_OPTIMIZED, as in inspect, which is large.
_OF_FUNCTION = 0x02 | 0x01
_KEEPS = sys.version_info < (3, 13)
_ASKING = frozenset(("locals", "vars", "dir", "eval", "exec"))


def locals_of(frame: FrameType) -> dict[str, object]:
    """A copy of a frame's variables, by name; empty where to ask for them would change what the program has."""
    if not (_KEEPS and frame.f_code.co_flags & _OF_FUNCTION == _OF_FUNCTION):
        return dict(frame.f_locals)
    if _may_ask(frame.f_code):
        return {}
    held = frame.f_locals
    found = dict(held)
    # Else somebody has asked from outside, such as a debugger.
    if sys.getrefcount(held) == _OF_HELD_BY_FRAME:
        held.clear()
    return found


def _may_ask(code: CodeType) -> bool:
    if _ASKING.isdisjoint(code.co_names):
        return False
    # Methods may have such a name, as model.eval().
    return any(one.opname == "LOAD_GLOBAL" and one.argval in _ASKING for one in dis.get_instructions(code))


def _references_of_one() -> int:
    held = sys._getframe().f_locals
    return sys.getrefcount(held)


# How many are counted is different from version to version.
_OF_HELD_BY_FRAME = _references_of_one() if _KEEPS else 0
