"""The instruction at which a function has failed: whether it called something or raised, and whether that is its own.

True of CPython 3.11 to 3.14. Python 3.10 does not tell where in its line a call begins, so there no call is the
function's own. Where instructions have other names, a failure is taken for the function's own work.
"""

from __future__ import annotations

import sys
from collections import deque
from dis import Instruction, get_instructions, opname
from types import CodeType, TracebackType

# What comes with a call, and what calls a method.
_BESIDE_CALLS = ("PUSH_NULL", "PRECALL", "KW_NAMES", "CACHE", "EXTENDED_ARG", "BUILD_LIST", "LIST_EXTEND")
_METHODS = ("LOAD_ATTR", "LOAD_METHOD")
_BUILT_IN_METHODS = frozenset(
    name for kind in (dict, list, set, str, deque) for name in vars(kind) if not name.startswith("_")
)


def is_own_work(failed: TracebackType) -> bool:
    """True if a function has failed at what it does itself: neither at what it was given to call, nor by raising.

    What is called has left no frame: it is a function without one.
    """
    code, at = failed.tb_frame.f_code, failed.tb_lasti
    doing = opname[code.co_code[at]]
    return not ("RAISE" in doing or "CALL" in doing) or ("CALL" in doing and _is_own_call(code, at))


def _is_own_call(code: CodeType, at: int) -> bool:
    """True if what is called here is the function's own: a global, or what Python's containers and strings can do.

    What it was given has no such name: it comes as an argument, or out of a closure or an attribute.
    """
    if sys.version_info < (3, 11):
        return False
    parts = [part for part in get_instructions(code) if part.offset <= at]
    start = _start(parts[-1])
    if parts[-1].opname == "CALL_KW":
        # Python 3.13 loads the names of its keywords right before it.
        del parts[-2]
    same = [part for part in parts if start is not None and _start(part) == start and part.opname not in _BESIDE_CALLS]
    # What is called is loaded last of all that begins there, but for its arguments; what a call has returned is not.
    if len(same) < 2 or not same[-2].opname.startswith("LOAD") or same[-1].opname == "CALL_FUNCTION_EX":
        return False
    name = same[-2].argval
    return same[-2].opname in ("LOAD_GLOBAL", "LOAD_NAME") or (
        name in _BUILT_IN_METHODS and same[-2].opname in _METHODS
    )


def _start(part: Instruction) -> tuple[int, int] | None:
    positions = getattr(part, "positions", None)
    if positions is None or positions.lineno is None or positions.col_offset is None:
        return None
    return positions.lineno, positions.col_offset
