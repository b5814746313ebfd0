"""The variables that a model's saved steps read, listed with their names: made anew only when they may be others."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.keras_names import Names, leaf_variables, variables_of

if TYPE_CHECKING:
    from smd_agent.tensorflow.hook import TensorflowHook


@dataclass
class Listed:
    """Variables by their names in the run.

    has_values: whether they are known to have got their first values.
    """

    names: tuple[str, ...] = ()
    variables: list[Any] = field(default_factory=list)
    has_values: bool = False

    def can_be_read(self, hook: TensorflowHook) -> bool:
        """Whether those that the current step saves have values.

        New variables are empty until TensorFlow runs the function that gives them their values.
        """
        if not self.has_values:
            wanted = [v for name, v in zip(self.names, self.variables, strict=True) if hook.wants(name)]
            if not all(variable.numpy().shape == tuple(variable.shape) for variable in wanted):
                return False
            self.has_values = bool(wanted)
        return True


class ModelVariables:
    """The lists of one model; ``changes`` tells when they have to be made anew: it differs then.

    Args:
        names: of all layers and variables.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._weights = self._others = Listed()
        self._weights_as_of: object = None
        self._others_as_of: object = None
        self._placed_by: weakref.ref[TensorflowHook] | None = None

    def weights(self, model: Any, changes: object) -> Listed:
        """The variables of its layers."""
        if self._weights_as_of != changes or not self._weights.names:
            self._weights_as_of = changes
            name = self._names.weight
            found = [(name(layer, variable, model), variable) for layer, variable in leaf_variables(model)]
            self._weights = _listed(found, self._weights)
        return self._weights

    def of_optimizers(self, model: Any, optimizers: Sequence[Any], hook: TensorflowHook, changes: object) -> Listed:
        """The variables of optimizers that are not the model's as well, each in the collection where it belongs."""
        as_of = (changes, [id(optimizer) for optimizer in optimizers])
        if self._others_as_of != as_of or self._placed_by is None or self._placed_by() is not hook:
            self._others_as_of, self._placed_by = as_of, weakref.ref(hook)
            own = {id(variable) for variable in model.variables}
            found = {
                self._names.plain(variable): variable
                for optimizer in optimizers
                for variable in variables_of(optimizer)
                if id(variable) not in own
            }
            for name in found:
                hook.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
            self._others = _listed(list(found.items()), self._others)
        return self._others


def _listed(found: Sequence[tuple[str, Any]], before: Listed) -> Listed:
    names, variables = tuple(name for name, _ in found), [variable for _, variable in found]
    same = names == before.names and all(a is b for a, b in zip(variables, before.variables, strict=True))
    return before if same else Listed(names, variables)
