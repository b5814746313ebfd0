"""The arguments that choose tensors, steps and a worker of a run: declared once, for all functions that take them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from smd_agent.core.collection import Collection

Function = TypeVar("Function", bound=Callable[..., Any])


class Choice(TypedDict, total=False):
    """What is read of a run, as keyword arguments; without any, all of it.

    regex: only tensors in whose name one of these is found.
    collection: only members of this collection. Not together with ``regex``.
    mode: only steps of this mode, and how ``steps`` are counted.
    steps: only these of the saved steps.
    worker: only what this worker saved.
    """

    regex: str | Iterable[Any] | None
    collection: str | Collection | None
    mode: ModeKeys
    steps: Iterable[int] | None
    worker: str | None


WHOLE: Choice = {"regex": None, "collection": None, "mode": ModeKeys.GLOBAL, "steps": None, "worker": None}
"""The choice of everything: the defaults."""


def takes_choice(function: Function) -> Function:
    """Have a function that is declared with ``**choice`` show its arguments by name, and refuse others at once."""
    own = inspect.signature(function)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    first = [one for one in named if one.kind is not one.KEYWORD_ONLY]
    chosen = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(name))
        for name, default in WHOLE.items()
    ]
    whole = own.replace(parameters=[*first, *chosen, *named[len(first) :]])

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        whole.bind(*args, **kwargs)
        return function(*args, **kwargs)

    called.__signature__ = whole  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def _annotation(name: str) -> str:
    # As it is written: what is imported for types only cannot be looked up.
    declared: Any = Choice.__annotations__[name]
    return str(getattr(declared, "__forward_arg__", declared))
