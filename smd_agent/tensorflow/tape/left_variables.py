"""Variables that stand behind those that are trained, and that nothing trains: a head that was forgotten.

They are told of only when several steps have passed and they have not changed: what trains them may have its turn
later, as the other half of a GAN has, or may be no optimizer of Keras's.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from smd_agent.framework.keras.plain_access import attribute, own_attributes, own_variables
from smd_agent.framework.weak_references import Reference
from smd_agent.interpreter.living_objects import living
from smd_agent.tensorflow.graph.loss_graph import inner_variable
from smd_agent.tensorflow.types import Variable
from smd_agent.tensorflow.variable_names import is_variable

# Steps of training, saved or not: the other half of a GAN may be trained in each fifth alone.
_PATIENCE = 10


class _First(NamedTuple):
    """A variable when it was seen first.

    variable: it.
    step: then.
    value: a checksum of what it held; None if that is not known.
    """

    variable: weakref.ref[Any]
    step: int
    value: int | None


class LeftVariables:
    """The variables of a run that stand behind those that are trained.

    Args:
        sample: gives what is looked at of a variable, None if it has no numbers.
    """

    def __init__(self, sample: Callable[[Variable], Any]) -> None:
        self._sample = sample
        self._first: dict[int, _First] = {}
        self._known: dict[int, weakref.ref[Any]] = {}
        self._frozen: set[int] = set()

    def still(self, step: int, variables: Iterable[Variable], given: Iterable[Variable]) -> list[Variable]:
        """Those of some variables that nothing has trained so far, as the program knows them.

        Args:
            step: a saved one in which they came up.
            variables: TensorFlow's.
            given: all that optimizers were given.
        """
        trained = {id(inner_variable(variable)) for variable in given}
        found = []
        for variable in {id(one): one for one in variables if id(one) not in trained}.values():
            array = self._sample(variable)
            value = None if array is None else zlib.crc32(array.tobytes())
            first = self._first.get(id(variable))
            if first is None or first.variable() is not variable:
                self._first[id(variable)] = _First(Reference(variable), step, value)
            elif value is None or value != first.value:
                # It has been trained, by whatever.
                self._first[id(variable)] = first._replace(value=None)
            elif step - first.step >= _PATIENCE:
                found.append(variable)
        outer = self._as_known(found)
        return [one for one in outer if attribute(one, "trainable", True) and id(one) not in self._frozen]

    def _as_known(self, variables: list[Variable]) -> list[Any]:
        """The variables of Keras 3 that are around those of TensorFlow, of which they do not know."""
        if any(self._around(variable) is None for variable in variables):
            # Walks through all objects, made only where something is wrong.
            found = [one for one in living(object) if is_variable(one)]
            around = {id(inner_variable(one)): one for one in found if inner_variable(one) is not one}
            for variable in variables:
                self._known[id(variable)] = Reference(around.get(id(variable), variable))
            # In Keras 2 it is the layer that is frozen, and not its variables.
            frozen = [one for one in living(tf.Module) if own_attributes(one).get("_trainable") is False]
            self._frozen.update(id(variable) for layer in frozen for variable in own_variables(layer))
        return [known for variable in variables if (known := self._around(variable)) is not None]

    def _around(self, variable: Variable) -> Any | None:
        known = self._known.get(id(variable))
        found = None if known is None else known()
        return found if found is not None and inner_variable(found) is variable else None
