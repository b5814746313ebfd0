"""Access to the program's objects that runs nothing of their classes.

No property, no ``__getattr__``, no ``__len__`` or ``__iter__`` of a class of the program's is called, and its
``__class__`` is not asked either: what is there is read as the base class holds it. What such a class keeps in another
place than its base class does is not found.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import OrderedDict, UserDict, UserList
from collections.abc import Iterable
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")

_ABSENT = object()
_PYTHONS = sys.stdlib_module_names

# Those of ``type`` itself: a metaclass may have others.
bases_of: Any = vars(type)["__mro__"].__get__
"""Gives a class and all that it is made from, in the order in which attributes are looked for."""
_held_by_class: Any = vars(type)["__dict__"].__get__
held_by_module: Any = vars(ModuleType)["__dict__"].__get__
"""Gives the names of a module; its class may have a ``__getattribute__`` that imports what is asked for."""


def is_a(value: object, kind: type[T] | tuple[type[T], ...]) -> TypeGuard[T]:
    """True if a value is an instance of a class, by its type alone; ``isinstance`` may ask its ``__class__`` too."""
    return issubclass(type(value), kind)


def in_class(kind: type, name: str, default: Any = None) -> Any:
    """The attribute of a class, or of one that it is made from, as it stands there."""
    for base in bases_of(kind):
        found = _held_by_class(base).get(name, _ABSENT)
        if found is not _ABSENT:
            return found
    return default


def own_dict(value: object) -> dict[str, Any]:
    """The attributes that an object has itself; of one without a dict, none."""
    for base in bases_of(type(value)):
        found = _held_by_class(base).get("__dict__")
        if type(found) is GetSetDescriptorType:
            own: dict[str, Any] = found.__get__(value)
            return own
    return {}


def attribute(value: object, name: str, default: Any = None) -> Any:
    """An attribute that an object has itself, in its dict or in a slot, or else what its class has, as it stands."""
    held = in_class(type(value), name, _ABSENT)
    if type(held) is MemberDescriptorType:
        try:
            return held.__get__(value)
        except AttributeError:
            return default
    found = own_dict(value).get(name, _ABSENT)
    if found is not _ABSENT:
        return found
    return default if held is _ABSENT else held


def pairs_of(mapping: object) -> list[tuple[Any, Any]]:
    """Keys and values of a dict, of whatever class that is made from it; of anything else nothing."""
    kind = type(mapping)
    if issubclass(kind, OrderedDict):
        # It has an order of its own.
        return [*OrderedDict.items(mapping)]  # type: ignore[arg-type]
    if issubclass(kind, dict):
        return [*dict.items(mapping)]  # type: ignore[arg-type]
    return pairs_of(own_dict(mapping).get("data")) if issubclass(kind, UserDict) else []


def elements_of(value: object) -> Iterable[Any]:
    """The elements of a list or tuple, of whatever class that is made from them; of anything else nothing."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value  # type: ignore[return-value]
    if issubclass(kind, list):
        return list.__iter__(value)  # type: ignore[arg-type]
    if issubclass(kind, tuple):
        return tuple.__iter__(value)  # type: ignore[arg-type]
    return elements_of(own_dict(value).get("data")) if issubclass(kind, UserList) else ()


def is_installed(kind: type) -> bool:
    """True if a class is one of an installed library, and none of the program's own."""
    return _is_of_library(getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


@functools.lru_cache(maxsize=1024)
def _is_of_library(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(re.split(r"[\\/]", file))


def runs_program(kind: type, *names: str) -> bool:
    """True if any of these methods of a class is the program's: neither Python's nor an installed library's."""
    for name in names:
        definer = next((base for base in bases_of(kind) if name in _held_by_class(base)), object)
        if definer.__module__.partition(".")[0] not in _PYTHONS and not is_installed(definer):
            return True
    return False


def text_of(key: object, place: int) -> str:
    """A key of a dict as a part of a name: what it says if it is a text or number, else its class and its place."""
    if type(key) is str:
        return key
    if issubclass(type(key), str):
        return str.__str__(key)
    if type(key) is int:
        return str(key)
    return f"{type(key).__name__}_{place}"
