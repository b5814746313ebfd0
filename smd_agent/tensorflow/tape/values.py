"""Values that a step with tapes saves: what the tapes give, and the variables of optimizers."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Protocol

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.gradient_values import GradientValues
from smd_agent.framework.keras.names import variables_of
from smd_agent.tensorflow.last_variables import LastVariables
from smd_agent.tensorflow.types import Optimizer, Variable
from smd_agent.tensorflow.variable_names import NAMES, VariableNames, gradient_name, loss_name, weight_name


class TapeOptimizers(Protocol):
    """Knows the optimizers whose variables are saved with the steps of tapes, and what takes the values of these."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""

    @property
    def optimizers(self) -> Sequence[weakref.ref[Optimizer]]:
        """Those whose variables are saved too."""

    @property
    def last_variables(self) -> LastVariables:
        """Takes variables that are looked at when the program ends."""


class TapeNames:
    """The names that the values of tapes are stored under."""

    def __init__(self) -> None:
        self._variables = VariableNames()

    def weight(self, variable: Variable) -> str:
        """The name of a variable's value: that by which ``fit`` and its like store it, if one of them was first."""
        return NAMES.known_weight(variable, weight_name(self._variables.of(variable)))

    def variable(self, variable: Variable) -> str:
        """The variable's name in this run."""
        return self._variables.of(variable)

    def gradient(self, variable: Variable, number: int) -> str:
        """The name that a variable's gradient is stored under; ``number`` counts several of one step."""
        return gradient_name(self._variables.of(variable), number)

    def loss(self, number: int) -> str:
        """The name that what a tape differentiates is stored under; ``number`` counts several of one step."""
        return loss_name(number)

    def plain(self, variable: Variable) -> str:
        """The name that an optimizer's variable is stored under."""
        return f"{self._variables.of(variable)}:0"


class TapeValues(GradientValues[Variable]):
    """Saves what tapes give, and once a step the variables of the optimizers that the user has wrapped.

    Attributes:
        names: of the values.
    """

    def __init__(self, wrapped: TapeOptimizers) -> None:
        self.names = TapeNames()
        super().__init__(wrapped.recorder, self.names)
        self._wrapped = wrapped
        self._optimizers_saved = False

    def weights(self, variables: Sequence[Variable]) -> None:
        """Save variables as they are now, each once a step, and those of the optimizers."""
        super().weights(variables)
        self._keep(variables)
        self._optimizers()

    @WEIGHTS.fence("keeping variables for the end")
    def _keep(self, variables: Sequence[Variable]) -> None:
        if CollectionKeys.WEIGHTS in self._wrapped.recorder.collections_due():
            self._wrapped.last_variables.keep(self._wrapped.recorder.position.step, variables, self.names.weight)

    def begin_step(self) -> None:
        """Forget what the last step has had."""
        super().begin_step()
        self._optimizers_saved = False

    def _optimizers(self) -> None:
        if self._optimizers_saved or not self._wrapped.optimizers:
            return
        self._optimizers_saved = True
        recorder = self._wrapped.recorder
        if not recorder.ever_saves(CollectionKeys.OPTIMIZER_VARIABLES):
            return
        found = {}
        for optimizer in filter(None, (reference() for reference in self._wrapped.optimizers)):
            for variable in variables_of(optimizer):
                name = self.names.plain(variable)
                recorder.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
                found[name] = variable
        recorder.save_tensors(list(found), list(found.values()))
