"""Base of the hooks that save what Keras logs for its callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.environment import Sources
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.keras.built_in_collections import BUILT_IN, DEFAULT_SAVED
from smd_agent.framework.keras.environment import facts
from smd_agent.framework.keras.left_weights import LeftWeights
from smd_agent.framework.keras.plain_access import unwrapped
from smd_agent.framework.keras.stopping import FitStopper
from smd_agent.framework.keras.types import Model
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.nested_tensors import NOTHING, pairs_in
from smd_agent.framework.plain_access import is_a, text_of
from smd_agent.framework.weak_references import Reference, WeakIdentityMap
from smd_agent.framework.weights_or_biases import ParameterRoles


class StepListener(Protocol):
    """Is told of every training step, in those that are saved and in others; it raises nothing."""

    def begins(self, step: Any, steps: int) -> bool | None:
        """A model's step function begins so many steps in one call; True if their end is to be told."""

    def ended(self) -> object:
        """The steps have ended, the last of them being the current step."""


class KerasLogs(FrameworkHook):
    """Saves losses and metrics as Keras logs them; has the collections and names of Keras and TensorFlow.

    Attributes:
        every_step: is told of training steps; None if nobody wants that.
        roles: keep facts about variables out of weights and biases.
        facts_told: the text that was saved last of the variables of each model.
        loss_guesses: the labels that losses were given so far.
        left: the weights as the last training has left them.
    """

    built_in = BUILT_IN
    default_saved = DEFAULT_SAVED
    facts: ClassVar[Sources] = (facts,)
    every_step: StepListener | None = None

    def set_up(self) -> None:
        """The reductions of a tensor are stored under its name without the output's number."""
        super().set_up()
        self.selection.other_names = _without_number
        self.roles = ParameterRoles(self.selection)
        self.facts_told: dict[str, str] = {}
        self.loss_guesses = LossGuesses(np)
        self.left = LeftWeights(self.to_array)
        self._last_model: Callable[[], object] = bool
        self._trained: WeakIdentityMap[Model, bool] = WeakIdentityMap()
        self.recorder.requests.stopper = FitStopper(lambda: self._last_model())

    def model_runs(self, model: Model) -> None:
        """The step that begins now is one of this model's."""
        if self._last_model() is not model:
            self._last_model = Reference(model)
            self.loss_guesses.begin_anew()
            # Of a GAN the models take turns.
            if self._trained.get(model) is None:
                self._trained.set(model, True)
                self.training_begins_anew(has_begun=True)

    def left_weights(self) -> Mapping[str, Any]:
        """The variables of the model that was trained last, if they are as ``fit`` has left them."""
        return self.left.weights(self.recorder.clocks[ModeKeys.TRAIN].step)

    def save_logs(self, outputs: object, is_tensor: Callable[[Any], bool]) -> None:
        """Save the logs among what a step has returned, in it."""
        logs = logs_in(outputs)
        if logs is None:
            return
        pairs = list(_flat(logs, is_tensor))
        for name, _ in pairs:
            self.place_log(name)
        self.recorder.save_tensors([name for name, _ in pairs], [value for _, value in pairs])

    def save_epoch(self, logs: Mapping[str, Any]) -> None:
        """Save what an epoch has given, in the current step, whatever that saves otherwise.

        What its training has given belongs to a step of training; in a step of another mode it is left out.
        """
        self.save_validation({name: value for name, value in logs.items() if name.startswith("val_")})
        if self.position.clock is self.recorder.clock_for(ModeKeys.TRAIN):
            self.save_training({name: value for name, value in logs.items() if not name.startswith("val_")})

    def save_validation(self, logs: Mapping[str, Any]) -> None:
        """Save what an epoch's validation gave."""
        for name, value in logs.items():
            captured = self._log_to_save(name, value)
            if captured is not None:
                self.recorder.save_number(name, captured.reshape(-1), None)

    def save_training(self, logs: Mapping[str, Any]) -> None:
        """Save what the training of an epoch gave, unless its last step, which is the current one, has done so."""
        for name, value in _flat(logs, lambda _: True):
            if not self.recorder.wants(name):
                captured = self._log_to_save(name, value)
                if captured is not None and captured.size == 1:
                    self.recorder.save_number(name, captured, None)

    def _log_to_save(self, name: str, value: Any) -> npt.NDArray[Any] | None:
        self.place_log(name)
        collection = CollectionKeys.LOSSES if name.endswith("loss") else CollectionKeys.METRICS
        captured = self.to_array(value)
        if captured is None or not captured[0].size or not self._is_within(collection):
            return None
        array: npt.NDArray[Any] = captured[0].copy()
        return array

    def _is_within(self, collection: str) -> bool:
        """True if the current step is not outside of those between which a collection is saved."""
        if collection not in self.include_collections:
            return False
        config = (self.get_collection(collection).save_config or self.save_config).get_save_config(self.mode)
        step = self.position.clock.step
        return step >= config.start_step and (config.end_step is None or step < config.end_step)

    def place_log(self, name: str) -> None:
        """Put a value of Keras's logs where it belongs."""
        if name in ("loss", "val_loss"):
            return
        self.selection.place(CollectionKeys.METRICS, name)
        if name.endswith("_loss"):
            self.selection.place(CollectionKeys.LOSSES, name)


def logs_in(value: object) -> dict[str, Any] | None:
    """The logs that a step has returned, None if it has returned anything else."""
    found = pairs_in(unwrapped(value))
    return None if found is NOTHING else {text_of(key, place): one for place, (key, one) in enumerate(found)}


def _without_number(tensor_name: str) -> Iterator[str]:
    name, colon, _ = tensor_name.rpartition(":")
    if colon:
        yield name


def _flat(logs: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Names and values of logs, those of outputs inside among them."""
    for name, value in logs.items():
        inside = logs_in(value)
        if inside is not None:
            yield from _flat(inside, is_tensor)
        elif is_tensor(value) or is_a(value, (int, float)):
            yield str(name), value
