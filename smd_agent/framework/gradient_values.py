"""Values of a step of differentiated variables: the losses, the variables as they were, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from smd_agent.core.ports import StepWriter

V = TypeVar("V")
V_contra = TypeVar("V_contra", contravariant=True)


class TensorNames(Protocol[V_contra]):
    """The names that values are stored under; ``number`` counts several of one step."""

    def weight(self, variable: V_contra) -> str:
        """The name that a variable's value is stored under."""

    def gradient(self, variable: V_contra, number: int) -> str:
        """The name that a variable's gradient is stored under."""

    def loss(self, number: int) -> str:
        """The name that what is differentiated is stored under."""


class GradientValues(Generic[V]):
    """The values of a step's differentiations, named and handed to the writer.

    Args:
        writer: takes the values.
        names: gives each its name.
    """

    def __init__(self, writer: StepWriter, names: TensorNames[V]) -> None:
        self._writer = writer
        self._names = names
        self._step = -1
        self._losses = 0
        self._weights: set[str] = set()
        self._gradients: dict[str, int] = {}

    def weights(self, variables: Sequence[V]) -> None:
        """Save variables as they are now; each once a step."""
        self._follow_step()
        names = [self._names.weight(variable) for variable in variables]
        new = [(name, variable) for name, variable in zip(names, variables, strict=True) if name not in self._weights]
        self._weights.update(name for name, _ in new)
        self._writer.save_tensors([name for name, _ in new], [variable for _, variable in new])

    def gradients(self, losses: Sequence[object], pairs: Sequence[tuple[V, object]]) -> None:
        """Save what was differentiated, and the gradient of each variable; one that is None is left out."""
        self._follow_step()
        for loss in losses:
            self._writer.save_tensor_now(self._names.loss(self._losses), loss)
            self._losses += 1
        names, values = [], []
        for variable, gradient in pairs:
            if gradient is None:
                continue
            first = self._names.gradient(variable, 0)
            number = self._gradients.get(first, 0)
            self._gradients[first] = number + 1
            names.append(self._names.gradient(variable, number) if number else first)
            values.append(gradient)
        self._writer.save_tensors(names, values)

    def begin_step(self) -> None:
        """Forget what the last step has had; a subclass that remembers more of it forgets that too."""
        self._losses = 0
        self._weights.clear()
        self._gradients.clear()

    def _follow_step(self) -> None:
        """Begin anew if the step is another one."""
        if self._step != self._writer.position.step:
            self._step = self._writer.position.step
            self.begin_step()
