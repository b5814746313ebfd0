"""Places of step counters: beside their modules, which the program copies, pickles and compares as without us.

``Module.__call__`` runs what the attribute ``_compiled_call_impl`` holds: None by the class, unless ``Module.compile``
has put something into the module. So the class of a module with a counter gets a descriptor, which knows the counters
by the identity of their modules, and has None for all others. Where ``Module.compile`` has put something, the counter
takes its place, and runs it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from smd_agent.pytorch.torch_compile import is_dynamo_compiling, leave_uncompiled

Module = torch.nn.Module

SLOT = "_compiled_call_impl"


class Counter:
    """Base of the counters.

    count: what is called in a module's place.
    previous: what ``compiled_call`` gives.
    """

    __slots__ = ("count", "previous")

    count: Callable[..., Any]
    previous: Callable[..., Any] | None


# What modules with counters are called by: those that nothing else has compiled.
_calls: dict[int, Callable[..., Any]] = {}
# Whether the compiler may come by.
_compiles = False


class _Place:
    """The descriptor."""

    __slots__ = ()

    # Without defaults: where the compiler comes by all the same it guards on them, and fails.
    def __get__(self, module: Module | None, kind: type | None) -> Any:
        # The compiler folds the second half to True.
        if _compiles and is_dynamo_compiling():
            return None
        return _calls.get(id(module))

    # Who pickles a class by its content gets what the class has without us.
    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())


leave_uncompiled(_Place.__get__)
_place = _Place()


class _Entry(NamedTuple):
    """A module with a counter, whose death ends the entry, and the classes that have the descriptor for it."""

    module: weakref.ref[Module]
    counter: Counter
    kinds: tuple[type, ...]


_entries: dict[int, _Entry] = {}


def counter_of(module: Module) -> Counter | None:
    """The counter of a module; None if it has none."""
    own: Any = _attributes(module).get(SLOT)
    entry = _entries.get(id(module))
    counter = None if entry is None else entry.counter
    return own if issubclass(type(own), Counter) else counter


def compiled_call(module: Module) -> Any:
    """The function that ``Module.compile`` has put into a module; None if it has not."""
    own: Any = _attributes(module).get(SLOT)
    return own.previous if issubclass(type(own), Counter) else own


def put(module: Module, counter: Counter) -> None:
    """Have a module's calls go to a counter."""
    if counter.previous is not None:
        _attributes(module)[SLOT] = counter
        return
    key, kinds = id(module), _kinds(module)
    _entries[key] = _Entry(weakref.ref(module, lambda _: _forget(key)), counter, kinds)
    _calls[key] = counter.count
    for kind in kinds:
        if SLOT not in vars(kind):
            type.__setattr__(kind, SLOT, _place)


def take(module: Module) -> Counter | None:
    """Take the counter off a module, and return it; None if there is none."""
    counter = counter_of(module)
    if counter is not None and counter.previous is not None:
        _attributes(module)[SLOT] = counter.previous
    elif counter is not None:
        _forget(id(module))
    return counter


def may_compile() -> None:
    """The program is about to compile."""
    global _compiles
    _compiles = True


def _attributes(module: Module) -> dict[str, Any]:
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


def _kinds(module: Module) -> tuple[type, ...]:
    # A lazy module becomes one of another class.
    later: Any = getattr(type(module), "cls_to_become", None)
    return (type(module), later) if issubclass(type(later), type) else (type(module),)


def _forget(key: int) -> None:
    entry = _entries.pop(key, None)
    _calls.pop(key, None)
    if entry is None:
        return
    used = {id(kind) for other in [*_entries.values()] for kind in other.kinds}
    for kind in entry.kinds:
        if id(kind) not in used and vars(kind).get(SLOT) is _place:
            type.__delattr__(kind, SLOT)
