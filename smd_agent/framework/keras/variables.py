"""Lists of the variables that a model's saved steps read, with their names: made anew only when they may be others."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework.keras.loss_inputs import TracedLoss
from smd_agent.framework.keras.names import Names, leaf_variables, variables_of
from smd_agent.framework.keras.optimizers import GivenVariables, has_own_schedule
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.keras.types import Model, Optimizer, Variable
from smd_agent.framework.keras.untrained import Untrained
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import Reference

_SETTINGS = ("learning_rate", "beta_1", "beta_2", "rho", "momentum", "decay", "weight_decay")


@dataclass
class Listed:
    """Variables by their names in the run.

    has_values: whether they are known to have got their first values.
    """

    names: tuple[str, ...] = ()
    variables: list[Variable] = field(default_factory=list)
    has_values: bool = False


class ModelVariables:
    """The lists of one model; ``changes`` tells when they have to be made anew: it differs then.

    Args:
        names: of all layers and variables.

    Attributes:
        traced: the variables that optimizers were given in compiled steps, while these were traced.
        given: those that they were given in any step that was seen.
        untrained: those that no step of the model trains.
        losses: of compiled steps, by name in the collection ``usage``.
        modes: in which a compiled step calls the model; None where that is not known.
    """

    def __init__(self, names: Names) -> None:
        self.traced = GivenVariables()
        self.given = GivenVariables()
        self.untrained = Untrained()
        self.losses: dict[str, TracedLoss] = {}
        self.modes: Modes | None = None
        self._names = names
        self._weights = self._others = Listed()
        self._weights_as_of: object = None
        self._others_as_of: object = None
        self._placed_by: weakref.ref[StepWriter] | None = None
        self._optimizers: dict[int, weakref.ref[Optimizer]] = {}

    def saw_optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer changes variables in this model's steps."""
        self._optimizers.setdefault(id(optimizer), Reference(optimizer))

    def optimizers(self, model: Model) -> list[Optimizer]:
        """The model's optimizer, and others that were seen to change variables in its steps."""
        own: Optimizer | None = attribute(model, "optimizer")
        seen = [optimizer() for optimizer in self._optimizers.values()]
        return [optimizer for optimizer in (own, *seen) if optimizer is not None]

    def title(self, model: Model) -> str:
        """The model's name in the run."""
        return self._names.layers.of(model)

    def names(self, variables: Sequence[Variable]) -> list[str]:
        """The variables' names in the run, whatever layers they belong to."""
        return [self._names.variable(variable) for variable in variables]

    def weights(self, model: Model, changes: object) -> Listed:
        """The variables of its layers."""
        if self._weights_as_of != changes or not self._weights.names:
            self._weights_as_of = changes
            name = self._names.weight
            found = [(name(layer, variable, model), variable) for layer, variable in leaf_variables(model)]
            self._weights = _listed(found, self._weights)
        return self._weights

    def of_optimizers(
        self, model: Model, optimizers: Sequence[Optimizer], writer: StepWriter, changes: object
    ) -> Listed:
        """The variables of optimizers that are not the model's as well, each in the collection where it belongs."""
        as_of = (changes, [id(optimizer) for optimizer in optimizers])
        if self._others_as_of != as_of or self._placed_by is None or self._placed_by() is not writer:
            self._others_as_of, self._placed_by = as_of, weakref.ref(writer)
            own = {id(variable) for variable in variables_in(model, "variables")}
            found = {
                self._names.plain(variable): variable
                for optimizer in optimizers
                for variable in variables_of(optimizer)
                if id(variable) not in own
            }
            for name in found:
                writer.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
            self._others = _listed(list(found.items()), self._others)
        return self._others


def settings_of(optimizer: Optimizer) -> dict[str, object]:
    """The settings of an optimizer, by the names that its variables would have."""
    owner = attribute(optimizer, "name") or type(optimizer).__name__
    known = _SETTINGS[1:] if has_own_schedule(optimizer) else _SETTINGS
    found = {f"{owner}/{key}:0": attribute(optimizer, key) for key in known}
    return {name: value for name, value in found.items() if value is not None and not is_a(value, (bool, str))}


def _listed(found: Sequence[tuple[str, Variable]], before: Listed) -> Listed:
    names, variables = tuple(name for name, _ in found), [variable for _, variable in found]
    same = names == before.names and all(a is b for a, b in zip(variables, before.variables, strict=True))
    return before if same else Listed(names, variables)
