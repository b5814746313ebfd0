"""Updates of parameters: how far an optimizer moves each one in a step that is saved.

Of a large parameter a part is looked at, see ``training_facts``; so little is copied and little computed.
Where an optimizer updates several times in a step, its first update is what is saved, as of the gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import UPDATES
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import AfterUpdate, BeforeUpdate, NewParameters, Probe, StepEnd, on
from smd_agent.framework.weights_or_biases import ParameterRoles

# A sum of squares between these is exact enough in float32.
_FEWEST, _MOST = 1e-30, 1e30


class Moved(NamedTuple):
    """A parameter that has been updated.

    names: what it is saved under, of which there may be several.
    size: how many elements it has.
    before: those that were looked at before the update.
    after: the same after it.
    """

    names: list[str]
    size: int
    before: Any
    after: Any


class Weights(Protocol):
    """Looks at the parameters of a framework."""

    def owned_by(self, optimizer: Any) -> Iterable[Any]:
        """The parameters that an optimizer updates."""

    def size_of(self, parameter: Any) -> int:
        """Number of elements of a parameter; it is one that can be read."""

    def sample(self, parameter: Any) -> Any | None:
        """A copy of what is looked at of a parameter, see ``training_facts.sample``; None if it cannot be read.

        It has a ``shape``, and is of floats that do not overflow where they are squared.
        """

    def changes(self, found: Sequence[Moved]) -> Iterable[tuple[Moved, Any, Any]]:
        """Of each parameter, in any order: its update and its update ratio; see ``training_facts``."""


class WeightChanges(Probe, domain=UPDATES, doing="looking at weights around an update"):
    """The updates of one step that is saved.

    Args:
        writer: takes the values.
        roles: of the parameters.
        weights: looks at them.
        updating: tells whether an update is under way, as where a closure calls the model.
    """

    def __init__(
        self, writer: StepWriter, roles: ParameterRoles, weights: Weights, updating: Callable[[], bool] = bool
    ) -> None:
        self._writer = writer
        self._roles = roles
        self._weights = weights
        self._updating = updating
        self.wanted = CollectionKeys.UPDATES in writer.collections_due()
        self._names: dict[int, list[str]] = {}
        self._before: dict[int, tuple[Any, Any]] = {}
        self._updated: set[int] = set()

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Save the updates of these too, under these names; a parameter may have several."""
        for name, parameter in new.pairs:
            self._names.setdefault(id(parameter), []).append(name)
        if self._updating():
            self._remember(parameter for _, parameter in new.pairs)

    @on(BeforeUpdate)
    def before_update(self, update: BeforeUpdate) -> None:
        """Remember the parameters of an optimizer."""
        if self._names:
            self._remember(self._weights.owned_by(update.optimizer))

    @on(AfterUpdate)
    def after_update(self, update: AfterUpdate) -> None:
        """Save how far the optimizer has moved its parameters."""
        if not self._before:
            return
        found = []
        for parameter in self._weights.owned_by(update.optimizer):
            key = id(parameter)
            known = self._before.pop(key, None)
            if known is None or known[0] is not parameter:
                continue
            before, after = known[1], self._weights.sample(parameter)
            if after is not None and before.shape == after.shape:
                self._updated.add(key)
                found.append(Moved(self._names[key], self._weights.size_of(parameter), before, after))
        self._save(found)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of what is remembered."""
        self._before.clear()

    def _remember(self, parameters: Iterable[Any]) -> None:
        for parameter in parameters:
            key = id(parameter)
            if key in self._names and key not in self._updated:
                copy = self._weights.sample(parameter)
                if copy is not None:
                    self._before[key] = parameter, copy

    def _save(self, found: list[Moved]) -> None:
        names: list[str] = []
        values: list[Any] = []
        for moved, update, ratio in self._weights.changes(found):
            for name in moved.names:
                names += (facts.UPDATE + name, facts.UPDATE_RATIO + name)
                values += (update, ratio)
        self._roles.keep_out(names)
        self._writer.save_tensors(names, values)


def part_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of what is looked at of an array of floats, in float32 or float64."""
    part = facts.sample(array.reshape(-1))
    return np.array(part, np.float64 if part.dtype == np.float64 else np.float32)


def changes(found: Iterable[Moved]) -> list[tuple[Moved, np.float64, np.float64]]:
    """Of each parameter, of which arrays of NumPy are given: its update and its update ratio."""
    # Of what is infinite the program is to hear no warning.
    with np.errstate(all="ignore"):
        return [(moved, *_change(moved)) for moved in found]


def _change(moved: Moved) -> tuple[np.float64, np.float64]:
    before = moved.before.reshape(-1)
    length, move = _length(before), _length(moved.after.reshape(-1) - before)
    ratio = move / length if length else float(move > 0)
    return np.float64(move * facts.scale_of(moved.size)), np.float64(ratio)


def _length(flat: npt.NDArray[Any]) -> float:
    squares = float(flat @ flat)
    if _FEWEST < squares < _MOST:
        return math.sqrt(squares)
    # Squares may have overflowed or vanished.
    flat = flat.astype(np.float64)
    largest = float(np.abs(flat).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    flat = flat / largest
    return largest * math.sqrt(float(flat @ flat))
