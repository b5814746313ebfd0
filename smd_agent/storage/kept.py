"""What was made for a key and is wanted again, a few of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")

_MOST = 64


def kept(known: dict[_Key, _Kept], key: _Key, make: Callable[[], _Kept]) -> _Kept:
    """Return what was made for a key, made now if it is not known any more."""
    if key not in known:
        if len(known) >= _MOST:
            known.clear()
        known[key] = make()
    return known[key]
