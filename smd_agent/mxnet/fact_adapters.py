"""Weights, parameters and inputs of Gluon for the facts of a training step; see ``framework.training_facts``."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet import autograd
from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent.framework import input_digests
from smd_agent.framework import training_facts as facts
from smd_agent.framework.followed_parameters import NOISE, State
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weight_changes import Moved, changes, part_of
from smd_agent.mxnet.arrays import arrays_in, fresh, plain, to_array
from smd_agent.mxnet.live_blocks import held_blocks
from smd_agent.mxnet.plain_access import (
    adds_gradients,
    can_be_trained,
    gradients_of,
    own_parameters,
    parameters_of,
    shape_of,
    trainer_of,
    values_of,
)
from smd_agent.mxnet.trainer_settings import groups_of

# Elements of each weight and gradient that are compared.
_ELEMENTS = 64


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
        self.title_of = title_of
        self.has_gradient = has_gradient

    def groups_of(self, trainer: Any) -> Mapping[str, list[Parameter]]:
        """The parameters of a Trainer by the name of their group."""
        title, parameters = self.title_of(trainer), parameters_of(trainer)
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

    def trained_by(self, trainer: Any) -> list[Parameter]:
        """The parameters that a Trainer updates."""
        return [*filter(can_be_trained, parameters_of(trainer))]

    def version_of(self, parameter: Parameter) -> bytes:
        """The digest of a parameter's values; of one that has none, of nothing."""
        return version_of(parameter)

    def living(self) -> set[int]:
        """The ids of the parameters of all blocks that the program holds."""
        return {id(one) for block in held_blocks() for one in own_parameters(block)}


class Gradients:
    """Gradients; of those on several contexts the first one that passes add to, and none that an update would use."""

    def __init__(self, title_of: Callable[[Any], str]) -> None:
        self.title_of = title_of

    def can_be_trained(self, parameter: Parameter) -> bool:
        """True if gradients of a parameter are computed."""
        return can_be_trained(parameter)

    def ids_of(self, trainer: Any) -> set[int]:
        """The ids of a Trainer's parameters."""
        return {*map(id, parameters_of(trainer))}

    def gradient_of(self, parameter: Parameter) -> NDArray | None:
        """The gradient that no update has used yet; None if there is none that can be read."""
        found, arrays = gradients_of(parameter), values_of(parameter)
        # A pass for another context is none for this one.
        return found[0] if len(found) == len(arrays) == 1 and _is_dense(found[0]) and fresh(arrays[0]) else None

    def added_to(self, parameter: Parameter) -> NDArray | None:
        """The gradient that passes add to, and do not write anew."""
        found = gradients_of(parameter) if adds_gradients(parameter) else []
        return found[0] if found and _is_dense(found[0]) else None

    def state_of(self, gradient: NDArray) -> State:
        """The array that stands in a gradient's place, and the digest of its values."""
        return id(gradient), _digest(gradient)

    def version_of(self, parameter: Parameter) -> bytes:
        """The digest of a parameter's values."""
        return _digest(*values_of(parameter)[:1])

    def lengths(self, gradients: Sequence[NDArray]) -> list[np.floating[Any]]:
        """The l2 of each gradient, of what is looked at of it."""
        return [np.linalg.norm(_sample(gradient).astype(np.float64)) for gradient in gradients]

    def length_of_all(self, lengths: Sequence[np.floating[Any]]) -> np.floating[Any]:
        """The l2 of what has these."""
        return np.linalg.norm(lengths)

    def parts_of(self, arrays: Mapping[int, Any]) -> dict[int, npt.NDArray[Any]]:
        """A copy of a part of each gradient, or parameter, which has values."""
        found = {key: values_of(one)[0] if is_a(one, Parameter) else one for key, one in arrays.items()}
        return {key: to_array(one)[0].reshape(-1)[:_ELEMENTS].astype(np.float64) for key, one in found.items()}

    def are_parallel(self, parts: Sequence[npt.NDArray[Any]], before: Sequence[npt.NDArray[Any]]) -> Any:
        """True if gradients have changed by one positive factor at most."""
        now, then = np.concatenate(parts), np.concatenate(before)
        lengths = np.linalg.norm(now) * np.linalg.norm(then)
        return lengths - now.dot(then) <= NOISE * lengths

    def are_same(self, parts: Sequence[npt.NDArray[Any]], before: Sequence[npt.NDArray[Any]]) -> Any:
        """True if weights are as they were."""
        return np.array_equal(np.concatenate(parts), np.concatenate(before))

    def are_cleared(self, gradients: Sequence[NDArray]) -> Any:
        """True if all elements of gradients are 0."""
        return not any(to_array(gradient)[0].any() for gradient in gradients)

    def all_of(self, signs: Sequence[Any]) -> bool:
        """True if all signs are."""
        return all(signs)


def version_of(parameter: Parameter) -> bytes:
    """The digest of a parameter's values; of one that has none, of nothing."""
    return _digest(*values_of(parameter)[:1])


def _is_dense(array: NDArray) -> bool:
    return bool(plain(array).stype == "default")


def _sample(array: NDArray) -> npt.NDArray[Any]:
    values, _ = to_array(array)
    part: npt.NDArray[Any] = facts.sample(values.reshape(-1))
    return part


def _digest(*arrays: NDArray) -> bytes:
    return hashlib.blake2b(b"".join(_sample(array).tobytes() for array in arrays), digest_size=16).digest()


def digest_of(inputs: Any) -> npt.NDArray[np.int64] | None:
    """The digest of what a block is called with; None where it gets no arrays. Of sparse ones, that of their parts."""
    parts = [part for array in arrays_in(inputs) for part in _parts(plain(array))]
    digest: npt.NDArray[np.int64] | None = input_digests.digest(parts, np)
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
        yield input_digests.words_of(facts.sample(values.reshape(-1))), note or values.dtype.name, array.shape
