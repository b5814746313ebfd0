"""Parameters of models whose gradients are followed through one saved step.

They are known by their ids and held weakly: a step stays open until the next one begins, and a model that the program
lets go of must go.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

State = tuple[int, Hashable]
"""The identity of what stands in a gradient's place, and what changes when it is changed in place."""

NOISE = 1e-2
"""How far from parallel rounding takes gradients that are."""


class Gradients(Protocol):
    """Knows the gradients of a framework, and computes with its arrays."""

    def can_be_trained(self, parameter: Any) -> bool:
        """True if a parameter can be trained, and is not frozen."""

    def title_of(self, optimizer: Any) -> str:
        """The name of an optimizer."""

    def ids_of(self, optimizer: Any) -> set[int]:
        """The ids of an optimizer's parameters."""

    def gradient_of(self, parameter: Any) -> Any:
        """The gradient that an update would use; None if there is none that can be read, such as a sparse one."""

    def added_to(self, parameter: Any) -> Any:
        """The gradient that the next backward pass adds to; None if there is none."""

    def state_of(self, gradient: Any) -> State:
        """The state of a gradient, by which it is seen whether it is as it was."""

    def version_of(self, parameter: Any) -> Hashable:
        """The version of a parameter, which is another one when its values have changed."""

    def lengths(self, gradients: Sequence[Any]) -> list[Any]:
        """The l2 of each gradient, of what is looked at of it."""

    def length_of_all(self, lengths: Sequence[Any]) -> Any:
        """The l2 of what has these; there is one at least."""

    def parts_of(self, arrays: Mapping[int, Any]) -> dict[int, Any]:
        """A copy of a part of each gradient or weight, by their keys: floats in one dimension."""

    def are_parallel(self, parts: Sequence[Any], before: Sequence[Any]) -> Any:
        """True if gradients have changed by one positive factor at most: a bool of the framework."""

    def are_same(self, parts: Sequence[Any], before: Sequence[Any]) -> Any:
        """True if weights are as they were: a bool of the framework."""

    def are_cleared(self, gradients: Sequence[Any]) -> Any:
        """True if all elements of gradients are 0: a bool of the framework."""

    def all_of(self, signs: Sequence[Any]) -> Any:
        """True if all bools of the framework are true, of which there is one at least."""


class FollowedParameters:
    """Parameters by their ids, in the order in which they were added.

    Args:
        gradients: knows those of the framework.
    """

    def __init__(self, gradients: Gradients) -> None:
        self._gradients = gradients
        self._parameters: dict[int, weakref.ref[Any]] = {}

    def add(self, parameters: Iterable[Any]) -> None:
        """Follow these too."""
        self._parameters.update((id(one), weakref.ref(one)) for one in parameters)

    def clear(self) -> None:
        """Follow none."""
        self._parameters.clear()

    @property
    def keys(self) -> list[int]:
        """Their ids."""
        return [*self._parameters]

    def weight(self, key: int) -> Any:
        """The parameter of an id; None if it is not followed, or has gone."""
        reference = self._parameters.get(key)
        return None if reference is None else reference()

    def weights(self, keys: Iterable[int]) -> dict[int, Any]:
        """The parameters of these ids that are still there."""
        return {key: weight for key in keys if (weight := self.weight(key)) is not None}

    def versions(self, keys: Iterable[int]) -> dict[int, Hashable]:
        """The versions of those parameters."""
        return {key: self._gradients.version_of(weight) for key, weight in self.weights(keys).items()}

    def gradients(self, keys: Iterable[int]) -> dict[int, Any]:
        """The gradients of these parameters that an update would use."""
        found = {key: self._gradients.gradient_of(weight) for key, weight in self.weights(keys).items()}
        return {key: gradient for key, gradient in found.items() if gradient is not None}

    def added_to(self, keys: Iterable[int]) -> dict[int, Any]:
        """The gradients of these parameters that the next backward pass adds to."""
        found = {key: self._gradients.added_to(weight) for key, weight in self.weights(keys).items()}
        return {key: gradient for key, gradient in found.items() if gradient is not None}
