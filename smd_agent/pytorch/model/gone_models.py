"""The weights of models that the program has let go of when it ends, as a function has that trains and returns.

They are kept only where reference counts end the model: then its parameters are still there when it goes. Where it is
part of a circle, the garbage collector ends both at once, and that seldom happens before the program ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.framework.weak_references import Reference
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.tracing import is_opaque
from smd_agent.pytorch.update_marks import UpdateMarks

LARGEST = 64 << 20
"""Bytes of the parameters that are kept, at most: what the program lets go of is to make room."""

NamedRefs = list[tuple[str, Reference[torch.nn.Parameter]]]


class GoneModels:
    """The models of a run that have gone.

    Args:
        marks: tell whether parameters are as the last update has left them.
        ended: gives the training step that has ended last; -1 while one is under way.
    """

    def __init__(self, marks: UpdateMarks, ended: Callable[[], int]) -> None:
        self._marks = marks
        self._ended = ended
        self._watched: list[Reference[torch.nn.Module]] = []
        self._kept: dict[str, torch.Tensor] = {}
        self._kept_at = -1

    def watch(self, tracked: TrackedModule) -> None:
        """Keep the weights of a model when it goes; those of earlier ones are another training's."""
        self._kept = {}
        self._watched = [one for one in self._watched if one() is not None]
        model = tracked.model
        if model is not None:
            pairs = [(name, Reference(parameter)) for name, parameter in tracked.parameters()]
            self._watched.append(Reference(model, lambda _: self._keep(pairs)))

    def weights(self) -> Mapping[str, torch.Tensor]:
        """The weights by name, as the training step that has ended last has left them; none where that is not known."""
        return self._kept if self._kept_at == self._ended() else {}

    def forget(self) -> None:
        """Look at no model any more."""
        self._watched.clear()
        self._kept = {}

    @fence("keeping the weights of a model that goes", WEIGHTS)
    def _keep(self, pairs: NamedRefs) -> None:
        step = self._ended()
        found = [(name, one) for name, reference in pairs if (one := reference()) is not None]
        if step < 0 or is_opaque() or not self._marks.are_left([[one for _, one in found]]):
            return
        kept = self._kept if step == self._kept_at else {}
        kept = {**kept, **{name: one.detach() for name, one in found}}
        if len(found) == len(pairs) and sum(one.nbytes for one in kept.values()) <= LARGEST:
            self._kept, self._kept_at = kept, step
