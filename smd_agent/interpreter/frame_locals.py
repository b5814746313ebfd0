"""Variables of functions that are running, or have been left by an exception (``frame.f_locals``).

Up to CPython 3.12 the frame of a function keeps a dict of them once it was asked, and with that what they hold, for as
long as it lives: it is emptied here. From 3.13 on what is asked for is a view of the variables themselves, which stays
as it is. What stands in a module's frame is the module's own dict.
"""

from __future__ import annotations

import sys
from types import FrameType

# CO_NEWLOCALS and CO_OPTIMIZED, as in inspect, which is large.
_OF_FUNCTION = 0x02 | 0x01
_KEEPS = sys.version_info < (3, 13)


def locals_of(frame: FrameType) -> dict[str, object]:
    """A copy of a frame's variables, by name."""
    held = frame.f_locals
    found = dict(held)
    if _KEEPS and frame.f_code.co_flags & _OF_FUNCTION == _OF_FUNCTION:
        held.clear()
    return found
