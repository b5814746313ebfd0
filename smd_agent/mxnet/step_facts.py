"""The facts of a training step, as Gluon has them; see ``framework.training_facts``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet import autograd
from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework import training_facts as facts
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.optimizer_settings import OptimizerSettings
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import (
    AfterUpdate,
    BeforeOptimizer,
    BeforeUpdate,
    NewParameters,
    Probes,
)
from smd_agent.framework.tracked_model import free_name
from smd_agent.framework.usage import Usage
from smd_agent.framework.weight_changes import Moved, WeightChanges, changes, part_of
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet.arrays import arrays_in, plain, raise_pending_error, to_array
from smd_agent.mxnet.gradients import Pair
from smd_agent.mxnet.layer_modes import LayerModes
from smd_agent.mxnet.loss_inputs import LossInputs
from smd_agent.mxnet.model_inputs import ModelInputs
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.step_counter import TrackedBlock
from smd_agent.mxnet.structure import (
    can_be_trained,
    is_sparse,
    name_of,
    parameters_of,
    shape_of,
    trainer_of,
    values_of,
)
from smd_agent.mxnet.trainer_settings import TrainerSettings, groups_of


class StepFacts(Probes):
    """The facts of one saved step.

    Args:
        blocks: those that are trained.
        has_gradient: tells whether a backward pass of this step has reached a parameter.
    """

    def __init__(self, blocks: TrainedBlocks, has_gradient: Callable[[Parameter], bool]) -> None:
        writer = blocks.recorder
        self._blocks = blocks
        self._trainers = TrainerSettings(self._is_over)
        self._settings = OptimizerSettings(writer, blocks.roles, self._trainers.settings_of, self._trainers.title_of)
        usage = Usage(writer, blocks.roles)
        super().__init__(
            (
                self._settings,
                WeightChanges(writer, blocks.roles, _Weights()),
                ParameterFacts(writer, blocks.facts_told, _Parameters(self._trainers.title_of, has_gradient)),
                InputDigests(writer, digest_of),
                ModelInputs(usage),
                LayerModes(usage),
                LossInputs(usage, blocks.loss_guesses),
            )
        )
        self._wants_updates = CollectionKeys.UPDATES in writer.collections_due()
        self._known: set[int] = set()
        self._titles: set[str] = set()

    def _is_over(self, trainer: Any) -> bool:
        # It lives on with its parameters until the garbage collector runs.
        known = (*self._blocks.models, *self._blocks.owners)
        own = {id(parameter) for tracked in known for _, parameter in tracked.parameters()}
        return own.isdisjoint(map(id, parameters_of(trainer)))

    def add(self, models: Iterable[TrackedBlock], pairs: Sequence[Pair]) -> None:
        """Save the facts of models that have become known.

        Args:
            models: those; the ones that are called come first.
            pairs: their parameters, with the names they are saved under.
        """
        names = {id(parameter): name for name, parameter in pairs}
        for tracked in models:
            own = [parameter for _, parameter in tracked.parameters() if id(parameter) not in self._known]
            if tracked.model is None or not own:
                continue
            self._known.update(map(id, own))
            title = free_name(name_of(tracked.model), self._titles.__contains__)
            self._titles.add(title)
            found = [(names[id(parameter)], parameter) for parameter in own]
            self.emit(NewParameters(title, tracked, found))
            if self._wants_updates:
                self._tell_of_sparse(found)

    def _tell_of_sparse(self, pairs: Iterable[Pair]) -> None:
        for name, parameter in pairs:
            # Where its weights are asked for too, that line says it.
            if is_sparse(parameter) and not self._blocks.recorder.wants(name):
                line = f"{facts.UPDATE}{name} is not saved: {name} is a sparse parameter"
                guard.say_once(("sparse update", name), line)

    @unseen
    def around_update(self, trainer: Any, update: Callable[[], Any]) -> Any:
        """Run what updates the parameters of a Trainer, and save how."""
        self.emit(BeforeOptimizer(trainer))
        self.emit(BeforeUpdate(trainer))
        done = self._trainers.before_update(trainer) if self._settings.wanted else None
        raise_pending_error()
        try:
            result = update()
        finally:
            if done is not None:
                done()
        # Not after a failure of ours, which has switched the capture off.
        if self._blocks.recorder.position.saving:
            self.emit(AfterUpdate(trainer))
            raise_pending_error()
        return result


class _Weights:
    """Parameters before and after an update; of those on several contexts, the first copy."""

    def owned_by(self, trainer: Any) -> Iterator[Parameter]:
        """The parameters that a Trainer updates."""
        return filter(can_be_trained, parameters_of(trainer))

    def size_of(self, parameter: Parameter) -> int:
        """How many elements a parameter has."""
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


class _Parameters:
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
        """Whether gradients of a parameter are computed."""
        return can_be_trained(parameter)

    def was_given(self, parameter: Parameter) -> bool:
        """Whether any Trainer was given a parameter."""
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
