"""Register of the functions of other libraries that the agent has replaced.

Every replacement of an attribute of a framework goes through ``replace`` or ``replace_everywhere`` (for the life of
the process) or ``Patch`` (for a while). Ours are known by identity alone: ``functools.wraps`` copies every attribute of
what it wraps, so a wrapper of the program's would carry any mark of ours.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from smd_agent.framework.error_boundary import own_failure
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.stack_room import has_room

Function = Callable[..., Any]
Make = Callable[[Function], Function]

_ABSENT = object()


class Until(Enum):
    """The end of a replacement, at which the function is put back."""

    PROCESS_ENDS = "the process ends"
    MODEL_IS_FOUND = "the model is found"
    STEP_CLOSES = "the saved step closes"
    CALL_RETURNS = "the call in progress returns"


class Replaced(NamedTuple):
    """One entry of the register.

    owner: the module or class whose attribute it is.
    name: the attribute.
    why: what the agent needs it for.
    until: when it is put back.
    """

    owner: Any
    name: str
    why: str
    until: Until

    @property
    def path(self) -> str:
        """Dotted name of the attribute, such as ``torch.autograd.backward``."""
        module = getattr(self.owner, "__module__", None)
        own = getattr(self.owner, "__qualname__", None) or getattr(self.owner, "__name__", repr(self.owner))
        return ".".join(part for part in (module, own, self.name) if part)


class _Entry(NamedTuple):
    """A function of ours that stands in attributes, and lives as long as its entry.

    installed: it.
    places: the attributes.
    before: what stood in each of them, if it is replaced for good.
    patch: if it is replaced for a while.
    """

    installed: Any
    places: tuple[Replaced, ...]
    before: tuple[Any, ...] = ()
    patch: Patch | None = None


# By the id of what stands there.
_entries: dict[int, _Entry] = {}


def replaced() -> list[Replaced]:
    """The functions that are replaced now, the oldest first; of patches that have ended but are covered, nothing."""
    found = [entry for entry in [*_entries.values()] if entry.patch is None or entry.patch.active]
    return [place for entry in found for place in entry.places]


def is_replaced(owner: Any, name: str) -> bool:
    """True if the agent has replaced this function, whatever others have put over it since."""
    return any(entry.owner is owner and entry.name == name for entry in replaced())


def is_ours(function: Any) -> bool:
    """True if a function, as it stands in a class or module, is one that the agent has put there."""
    found = _entries.get(id(function))
    return found is not None and found.installed is function


def standing() -> frozenset[int]:
    """The functions that stand in the register now, for ``undo``."""
    return frozenset(_entries)


def undo(before: frozenset[int]) -> None:
    """Put back what has been replaced since ``standing`` gave this, the last one first."""
    for key in [key for key in _entries if key not in before][::-1]:
        entry = _entries.pop(key)
        if entry.patch is not None:
            entry.patch.remove()
            continue
        for (owner, name, *_), original in zip(entry.places, entry.before, strict=True):
            if vars(owner).get(name) is entry.installed:
                _put_back(owner, name, original)


def _put_back(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)


def replace(
    owner: Any,
    name: str,
    make: Make,
    *,
    why: str,
    then: Callable[..., object] | None = None,
    enters: bool = False,
) -> Function:
    """Replace a function for the life of the process; returns what stands in its place.

    Args:
        owner: the module or class whose attribute it is.
        name: the attribute.
        make: makes the replacement from the original.
        why: what the agent needs it for, as the register tells it.
        then: called with the first argument where the replacement has failed and the original has returned; fenced.
        enters: the replacement is by itself what ``entrance`` makes of others, so that it takes one frame, not two.
    """
    original = getattr(owner, name)
    made = _named_as(original, make(original))
    replacement = functools.wraps(original)(unseen(made) if enters else entrance(original, made, then))
    before = vars(owner).get(name, _ABSENT)
    installed = _like(before, replacement)
    _entries[id(installed)] = _Entry(installed, (Replaced(owner, name, why, Until.PROCESS_ENDS),), (before,))
    setattr(owner, name, installed)
    return replacement


def replace_everywhere(function: Function, make: Make, *, why: str) -> Function:
    """Replace a function for the life of the process under every name that an imported module has for it.

    For a function that other modules have imported by name and call by that name of theirs. Returns what stands in its
    place, the same everywhere.

    Args:
        function: of a module.
        make: makes the replacement from it.
        why: what the agent needs it for, as the register tells it.
    """
    entered = entrance(function, _named_as(function, make(function)), is_rare=True)
    replacement = functools.wraps(function)(entered)
    places = []
    for module in [*sys.modules.values()]:
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            for name in [name for name, value in [*names.items()] if value is function]:
                names[name] = replacement
                places.append(Replaced(module, name, why, Until.PROCESS_ENDS))
    _entries[id(replacement)] = _Entry(replacement, (*places,), len(places) * (function,))
    return replacement


def entrance(
    original: Function, replacement: Function, then: Callable[..., object] | None = None, is_rare: bool = False
) -> Function:
    """A function that calls a replacement so that neither shows, in warnings or in tracebacks.

    Where the replacement fails, the original is called, and ``then`` with the first argument; see ``error_boundary``.
    What ``is_rare``, so that it may take a moment, is left to the original where the stack has no room for more.
    """
    unseen(replacement)

    def entered(*args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs) if is_rare and not has_room() else replacement(*args, **kwargs)
        except BaseException as error:
            instead = own_failure(error)
            if instead is None:
                raise
        result = original(*args, **kwargs) if instead.is_call else instead.of(original)
        if then is not None:
            then(*args[:1])
        return result

    return unseen(entered)


class Patch:
    """A function that is replaced for a while.

    Patches of one attribute, and wrappers that others put around them, may end in any order. One that has ended while
    it is covered passes calls on to the original and holds nothing else; its attribute is put back once it is
    uppermost.

    Args:
        owner: the module or class whose attribute it is.
        name: the attribute.
        make: makes the replacement from the original.
        why: what the agent needs it for.
        until: when it is put back.
    """

    def __init__(self, owner: Any, name: str, make: Make, *, why: str, until: Until = Until.STEP_CLOSES) -> None:
        self._owner = owner
        self._name = name
        self._before = vars(owner).get(name, _ABSENT)
        original: Function = getattr(owner, name)
        self._replacement: Function | None = unseen(_named_as(original, make(original)))
        self._installed = _like(self._before, functools.wraps(original)(self._entrance(original)))
        _entries[id(self._installed)] = _Entry(self._installed, (Replaced(owner, name, why, until),), patch=self)
        setattr(owner, name, self._installed)

    @property
    def active(self) -> bool:
        """True if calls reach the replacement."""
        return self._replacement is not None

    def remove(self) -> None:
        """Have the original called again. Repeating it is harmless."""
        self._replacement = None
        self._uncover()

    def _entrance(self, original: Function) -> Function:
        """The function that stands in the attribute: it calls the replacement as long as there is one."""

        def patched(*args: Any, **kwargs: Any) -> Any:
            try:
                return self._present(original)(*args, **kwargs) if has_room() else original(*args, **kwargs)
            except BaseException as error:
                instead = own_failure(error)
                if instead is None:
                    raise
            return original(*args, **kwargs) if instead.is_call else instead.of(original)

        return unseen(patched)

    def _present(self, original: Function) -> Function:
        """The function that a call has to reach now."""
        if self._replacement is not None:
            return self._replacement
        self._uncover()
        return original

    def _uncover(self) -> None:
        """Put back what stood in the attribute, as long as the uppermost function in it is a patch that has ended."""
        patch: Patch | None = self
        present = vars(self._owner).get(self._name)
        if present is not self._installed:
            # What others have put over ours stays.
            patch = _ended(present)
        while patch is not None:
            _entries.pop(id(patch._installed), None)
            _put_back(self._owner, self._name, patch._before)
            patch = _ended(patch._before)


def _ended(function: Any) -> Patch | None:
    found = _entries.get(id(function))
    if found is None or found.installed is not function or found.patch is None or found.patch.active:
        return None
    return found.patch


def _named_as(original: Function, replacement: Function) -> Function:
    """The replacement with the original's name, which Python has in its message about wrong arguments."""
    name = getattr(original, "__qualname__", None)
    if name is not None and hasattr(replacement, "__qualname__"):
        replacement.__qualname__ = name
    return replacement


def _like(before: Any, function: Function) -> Any:
    return staticmethod(function) if isinstance(before, staticmethod) else function
