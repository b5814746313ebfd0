"""Base of the models whose calls open steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from smd_agent.core.clock import RunPosition
from smd_agent.framework.weak_references import Reference

M = TypeVar("M")


class StepOpener(Protocol):
    """The object that the step counter of a model calls; the hook is one."""

    @property
    def position(self) -> RunPosition:
        """The position of the run."""

    def start_step(self) -> None:
        """Decide about the step that has just begun."""

    def finish_step(self) -> None:
        """Close the open step."""

    def count_missed(self, tracked: TrackedModel[Any] | None, train: bool, is_counted: bool) -> None:
        """A model's counter has failed: count the step that the call begins, if it does and ``is_counted`` is False."""


class TrackedModel(Generic[M]):
    """A model whose calls open steps. It is held weakly, so that it goes when the program lets go of it.

    Args:
        model: the model.

    Attributes:
        is_whole: whether the model itself is alive, not only a part of it that has all of its parameters.
        last: the global step in which it was called last. If that is the current one, its next call begins a step, even
            if in fact it was never called: so does the first call of all, as steps are counted from 0.
    """

    __slots__ = ("__weakref__", "_model", "is_whole", "last")

    def __init__(self, model: M) -> None:
        self._model: weakref.ref[M] = Reference(model)
        self.is_whole = True
        self.last = -1

    @property
    def model(self) -> M | None:
        """The model, None once the program has let go of it."""
        return self._model()

    def parts(self) -> Iterable[M]:
        """The model and all that is below it; nothing once it is gone."""
        raise NotImplementedError

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters by their names, each once; nothing once the model is gone."""
        raise NotImplementedError

    def is_in(self, parts: set[int]) -> bool:
        """True if it shares something with a model that has parts of these ids."""
        return any(id(part) in parts for part in self.parts())


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """The name itself or, if it is taken, the first of ``name_2``, ``name_3``, … that is not."""
    number = 1
    free = name
    while is_taken(free):
        number += 1
        free = f"{name}_{number}"
    return free
