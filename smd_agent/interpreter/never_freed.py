"""Objects that are never freed, not even when the interpreter ends: each is given a reference that nobody has.

True of CPython 3.10 to 3.14 (``Py_IncRef`` is in its stable interface). Where there is no ``ctypes.pythonapi``, as in
PyPy, this fails.
"""

from __future__ import annotations

import ctypes


def never_free(thing: object) -> None:
    """Let an object, and all that it holds, live on: what freeing it would do must not be done."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
