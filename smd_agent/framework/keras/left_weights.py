"""The model that Keras has trained last, and whether its weights are as that training has left them.

Keras tells of no change of a variable. So a few small ones are read when an epoch has ended, before any callback of the
program's may load other weights, and compared when the program ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.value_writing import Captured
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.keras.types import Model, Variable
from smd_agent.framework.keras.variables import ModelVariables
from smd_agent.framework.weak_references import Reference, to_nothing

_LARGEST = 1 << 14
# The first and the last ones of a model.
_LOOKED_AT = 4


class LeftWeights:
    """The weights of one hook's trainings.

    Args:
        to_array: gives a variable as an array.
    """

    def __init__(self, to_array: Callable[[Any], Captured | None]) -> None:
        self._to_array = to_array
        self._model: Callable[[], Model | None] = to_nothing
        self._variables: ModelVariables | None = None
        self._chosen: list[Callable[[], Variable | None]] = []
        self._step = -1
        self._values: list[npt.NDArray[Any]] = []

    def note(self, step: int, model: Model, variables: ModelVariables) -> None:
        """An epoch has ended, or a training amid one: its last step has this number among those of training."""
        if self._model() is not model:
            self._model = Reference(model)
            self._chosen = [Reference(one) for one in _chosen(variables_in(model, "trainable_variables"))]
        self._step, self._variables, self._values = step, variables, self._read()

    def weights(self, step: int) -> Mapping[str, Variable]:
        """The variables by name; none unless this was the last step, and they are as it has left them."""
        model = self._model()
        if model is None or self._variables is None or step != self._step:
            return {}
        now = self._read()
        if not now or len(now) != len(self._values) or not all(map(_equal, now, self._values)):
            return {}
        found = self._variables.weights(model, object())
        return dict(zip(found.names, found.variables, strict=True))

    def _read(self) -> list[npt.NDArray[Any]]:
        captured = [self._to_array(one) for reference in self._chosen if (one := reference()) is not None]
        return [one[0].copy() for one in captured if one is not None]


def _chosen(variables: Iterable[Variable]) -> list[Variable]:
    small = [one for one in variables if _is_small(attribute(one, "shape"))]
    return small if len(small) <= 2 * _LOOKED_AT else [*small[:_LOOKED_AT], *small[-_LOOKED_AT:]]


def _is_small(shape: Iterable[int] | None) -> bool:
    return shape is not None and int(np.prod([*shape])) <= _LARGEST


def _equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
