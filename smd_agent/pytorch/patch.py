"""Functions of the framework that are replaced for a while."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from smd_agent.pytorch.opaque import is_compiling, leave_uncompiled

_MARK = "_smd_agent_patch"


class Patch:
    """A replaced attribute of a module or class.

    Patches of one attribute may end in any order: one that is covered by another only passes calls through, and goes
    when it is uppermost again.

    Args:
        owner: whose attribute it is.
        name: the attribute, a function or method.
        wrap: makes the replacement from the original.
    """

    def __init__(self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._owner = owner
        self._name = name
        self._own = name in vars(owner)
        self._over = False
        original = self._original = getattr(owner, name)
        replacement = wrap(original)

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            # First, so that a compiler that traces this folds it to True and sees nothing else.
            if is_compiling():
                return original(*args, **kwargs)
            if self._over:
                self._uncover()
                return original(*args, **kwargs)
            return replacement(*args, **kwargs)

        leave_uncompiled(patched)
        leave_uncompiled(replacement)
        setattr(patched, _MARK, self)
        self._patched = patched
        setattr(owner, name, patched)

    def remove(self) -> None:
        """Have the original called again. Repeating it is harmless."""
        self._over = True
        self._uncover()

    def _uncover(self) -> None:
        while True:
            present = vars(self._owner).get(self._name)
            uppermost = getattr(present, _MARK, None)
            # Somebody else may have wrapped ours in the meantime; theirs stays. functools.wraps gives it our mark too.
            if not isinstance(uppermost, Patch) or not uppermost._over or uppermost._patched is not present:
                return
            if uppermost._own:
                setattr(self._owner, self._name, uppermost._original)
            else:
                delattr(self._owner, self._name)
