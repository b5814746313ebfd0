"""Parameters of models whose gradients are followed through one saved step.

They are known by their ids and held weakly: a step stays open until the next one begins, and a model that the program
lets go of must go. A distributed tensor is added to in its local part.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch

from smd_agent.pytorch.arrays import has_memory, local_of

State = tuple[int, int]
"""Which tensor stands in a gradient's place, and how often it has been changed in place."""


class FollowedParameters:
    """Parameters by their ids, in the order in which they were added."""

    def __init__(self) -> None:
        self._parameters: dict[int, weakref.ref[torch.Tensor]] = {}

    def add(self, parameters: Iterable[torch.Tensor]) -> None:
        """Follow these too."""
        self._parameters.update((id(one), weakref.ref(one)) for one in parameters)

    def clear(self) -> None:
        """Follow none."""
        self._parameters.clear()

    @property
    def keys(self) -> list[int]:
        """Their ids."""
        return [*self._parameters]

    def weight(self, key: int) -> torch.Tensor | None:
        """The parameter of an id; None if it is not followed, or has gone."""
        reference = self._parameters.get(key)
        return None if reference is None else reference()

    def weights(self, keys: Iterable[int]) -> dict[int, torch.Tensor]:
        """The parameters of these ids that are still there, their local parts."""
        pairs = ((key, self.weight(key)) for key in keys)
        return {key: local_of(weight) for key, weight in pairs if weight is not None}

    def gradient(self, key: int) -> torch.Tensor | None:
        """The gradient of a parameter; None if there is none that can be read, such as a sparse one."""
        weight = self.weight(key)
        gradient = None if weight is None else weight.grad
        return gradient if gradient is not None and has_memory(local_of(gradient)) else None

    def gradients(self, keys: Iterable[int]) -> dict[int, torch.Tensor]:
        """The gradients of these parameters that can be read."""
        return {key: gradient for key in keys if (gradient := self.gradient(key)) is not None}


def state_of(gradient: torch.Tensor) -> State:
    """The state of a gradient, by which it is seen whether it is as it was."""
    return id(gradient), local_of(gradient)._version
