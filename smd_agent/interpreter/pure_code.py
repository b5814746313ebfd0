"""A check of bytecode: whether a function does nothing but call one thing that it knows, and use local variables.

True of CPython 3.10 to 3.14, in which instructions that store anything but a local variable begin with ``STORE_`` or
``DELETE_``, and calls with ``CALL``. Where they have other names, code may be taken for pure that is not: a version
that is new needs the tests.
"""

from __future__ import annotations

import dis
from collections.abc import Collection
from types import CodeType

_CHANGES = ("STORE_", "DELETE_")
_OF_LOCALS = ("STORE_FAST", "DELETE_FAST")


def calls_only(code: CodeType, beginning: str, harmless: Collection[str]) -> bool:
    """True if code calls one global whose name begins so, once, and nothing else but attributes of these names."""
    calls = expected = found = 0
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name.startswith(_CHANGES) and not name.startswith(_OF_LOCALS):
            return False
        calls += name.startswith("CALL")
        found += name == "LOAD_GLOBAL" and str(instruction.argval).startswith(beginning)
        expected += name in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval in harmless
    return found == 1 and calls == found + expected
