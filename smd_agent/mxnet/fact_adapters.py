"""Weights, parameters and inputs of Gluon for the facts of a training step; see ``framework.training_facts``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet import autograd
from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent.framework import training_facts as facts
from smd_agent.framework.weight_changes import Moved, changes, part_of
from smd_agent.mxnet.arrays import arrays_in, plain, to_array
from smd_agent.mxnet.structure import can_be_trained, parameters_of, shape_of, trainer_of, values_of
from smd_agent.mxnet.trainer_settings import groups_of


class Weights:
    """Parameters before and after an update; of those on several contexts, the first copy."""

    def owned_by(self, trainer: Any) -> Iterator[Parameter]:
        """The parameters that a Trainer updates."""
        return filter(can_be_trained, parameters_of(trainer))

    def size_of(self, parameter: Parameter) -> int:
        """Number of elements of a parameter."""
        return math.prod(shape_of(parameter) or ())

    def sample(self, parameter: Parameter) -> npt.NDArray[Any] | None:
        """A copy of what is looked at of a parameter; None where it has no values, or is sparse."""
        found = values_of(parameter)
        if not found:
            return None
        array, _ = to_array(found[0])
        return part_of(array) if array.dtype.kind == "f" and array.size else None

    def changes(self, found: Sequence[Moved]) -> Iterable[tuple[Moved, Any, Any]]:
        """Update and update ratio of each."""
        return changes(found)


class Parameters:
    """Parameters and the Trainers that have them."""

    def __init__(self, title_of: Callable[[Any], str], has_gradient: Callable[[Parameter], bool]) -> None:
        self._title_of = title_of
        self.has_gradient = has_gradient

    def groups_of(self, trainer: Any) -> Mapping[str, list[Parameter]]:
        """The parameters of a Trainer by the name of their group."""
        title, parameters = self._title_of(trainer), parameters_of(trainer)
        return {
            f"{title}/group_{number}": [parameters[index] for index in indices]
            for number, indices in enumerate(groups_of(trainer))
        }

    def can_be_trained(self, parameter: Parameter) -> bool:
        """True if gradients of a parameter are computed."""
        return can_be_trained(parameter)

    def was_given(self, parameter: Parameter) -> bool:
        """True if any Trainer was given a parameter."""
        return trainer_of(parameter) is not None


def digest_of(inputs: Any) -> npt.NDArray[np.int64] | None:
    """The digest of what a block is called with; None where it gets no arrays. Of sparse ones, that of their parts."""
    parts = [part for array in arrays_in(inputs) for part in _parts(plain(array))]
    digest: npt.NDArray[np.int64] | None = facts.digest(parts, np)
    return digest


def _parts(array: NDArray) -> Iterator[tuple[npt.NDArray[np.int64], str, Sequence[int]]]:
    if array.stype != "default":
        with autograd.pause(train_mode=autograd.is_training()):
            dense = [array.data, array.indices, *([array.indptr] if array.stype == "csr" else [])]
        for part in dense:
            for words, dtype, _ in _parts(part):
                yield words, f"{array.stype} {dtype}", array.shape
    elif array.size:
        values, note = to_array(array)
        yield facts.words_of(facts.sample(values.reshape(-1))), note or values.dtype.name, array.shape
