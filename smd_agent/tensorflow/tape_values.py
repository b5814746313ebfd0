"""Values that a step with tapes saves: what the tapes give, and the variables of optimizers."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Protocol

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework.gradient_values import GradientValues
from smd_agent.framework.keras.names import variables_of
from smd_agent.tensorflow.naming import VariableNames, gradient_name, loss_name, weight_name
from smd_agent.tensorflow.types import Optimizer, Variable


class TapeWriter(StepWriter, Protocol):
    """Takes the values of the tapes' steps."""

    @property
    def optimizers(self) -> Sequence[weakref.ref[Optimizer]]:
        """Those whose variables are saved too."""

    def ever_wants_collection(self, name: str) -> bool:
        """Whether a collection is saved at some step."""


class TapeNames:
    """Where the values of tapes are stored."""

    def __init__(self) -> None:
        self._variables = VariableNames()

    def weight(self, variable: Variable) -> str:
        """Where a variable's value is stored."""
        return weight_name(self._variables.of(variable))

    def gradient(self, variable: Variable, number: int) -> str:
        """Where a variable's gradient is stored; ``number`` counts several of one step."""
        return gradient_name(self._variables.of(variable), number)

    def loss(self, number: int) -> str:
        """Where what a tape differentiates is stored; ``number`` counts several of one step."""
        return loss_name(number)

    def plain(self, variable: Variable) -> str:
        """Where an optimizer's variable is stored."""
        return f"{self._variables.of(variable)}:0"


class TapeValues(GradientValues[Variable]):
    """Saves what tapes give, and once a step the variables of the optimizers that the user has wrapped."""

    def __init__(self, writer: TapeWriter) -> None:
        self._tape_names = TapeNames()
        super().__init__(writer, self._tape_names)
        self._tape_writer = writer
        self._optimizers_saved = False

    def weights(self, variables: Sequence[Variable]) -> None:
        """Save variables as they are now, each once a step, and those of the optimizers."""
        super().weights(variables)
        self._optimizers()

    def _begin(self) -> None:
        super()._begin()
        self._optimizers_saved = False

    def _optimizers(self) -> None:
        writer = self._tape_writer
        if self._optimizers_saved or not writer.optimizers:
            return
        self._optimizers_saved = True
        if not writer.ever_wants_collection(CollectionKeys.OPTIMIZER_VARIABLES):
            return
        found = {}
        for optimizer in filter(None, (reference() for reference in writer.optimizers)):
            for variable in variables_of(optimizer):
                name = self._tape_names.plain(variable)
                writer.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
                found[name] = variable
        writer.save_tensors(list(found), list(found.values()))
