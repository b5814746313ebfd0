"""Base of the saved step of a Keras model: its variables, its logs, and what is said where gradients are missing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import GRADIENTS, LOSS_FACTS, LOSSES, UPDATES
from smd_agent.core.modes import ModeKeys
from smd_agent.framework import training_facts as facts
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.keras.facts import FactsSaver, Look, NoLook, StepFacts
from smd_agent.framework.keras.loss_inputs import LossNumbers
from smd_agent.framework.keras.names import numbered
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.keras.types import Model, Optimizer
from smd_agent.framework.keras.variables import Listed, ModelVariables, settings_of
from smd_agent.framework.plain_access import is_a


class LogSaver(FactsSaver, Protocol):
    """Takes the values of a Keras step, its logs among them."""

    def save_logs(self, outputs: object, is_tensor: Callable[[Any], bool]) -> None:
        """Save the logs among what a step has returned, in it."""


class KerasCapture(CapturedStep):
    """One step of a Keras model that is being saved.

    Args:
        saver: takes the step's values.
        model: whose step it is.
        mode: of the step.
        variables: lists of what the model's steps read.
        changes: differs when the model may have other variables than before.
        look: looks at variables and tensors; None: nothing does, so that there are no updates and no digests.

    Attributes:
        facts: of the step.
        losses: what they were given.
        steps: how many steps the call of the model's function makes, of which this is the last.
    """

    def __init__(
        self,
        saver: LogSaver,
        model: Model,
        mode: ModeKeys,
        variables: ModelVariables,
        changes: object,
        look: Look | None = None,
    ) -> None:
        super().__init__(saver.recorder)
        self._look = look or NoLook()
        self.facts = StepFacts(saver, self._look, variables.given)
        self.losses = LossNumbers(self.facts.usage, saver.loss_guesses, self.facts.images)
        self.steps = 1
        self._saver = saver
        self.model = model
        self.mode = mode
        self.variables = variables
        self.changes = changes

    @abstractmethod
    def begin(self, arguments: Sequence[object]) -> None:
        """The step begins: the model's function runs next, with these arguments."""

    def finish(self, outputs: object) -> None:
        """The model's function has returned this."""
        if self.mode is ModeKeys.TRAIN:
            self._tell_of_gradients()
            self._save_facts()
        if self.mode is not ModeKeys.PREDICT:
            self.facts.after_call(self.variables.title(self.model), self.variables.modes)
            self._save_losses()
            self._save_logs(outputs)

    @LOSSES.fence("saving the logs of a step")
    def _save_logs(self, outputs: object) -> None:
        self._saver.save_logs(outputs, self.is_tensor)

    def close(self) -> None:
        """The model's function has ended, by an exception or not; what was installed is removed."""
        self.installed.close()
        self.facts.close()

    @abstractmethod
    def is_tensor(self, value: object) -> bool:
        """True if a value is a tensor of what Keras computes with."""

    def can_be_read(self, found: Listed) -> bool:
        """True if those variables that the step saves have values by now."""
        return True

    def number(self, name: str) -> str:
        """The name of one more tensor of this step that is called so."""
        return numbered(name, self.next_number(name))

    def save_weights(self) -> bool:
        """Save the variables of the model's layers; whether there were any to be read."""
        found = self.variables.weights(self.model, self.changes)
        if not self.can_be_read(found):
            return False
        self.writer.save_tensors(found.names, found.variables)
        if self.mode is ModeKeys.TRAIN:
            self._remember(found)
        return bool(found.names)

    @UPDATES.fence("looking at weights before an update")
    def _remember(self, found: Listed) -> None:
        if self.steps == 1:
            self.facts.add(self.variables.names(found.variables), found.variables)
            self.facts.before_update(found.variables)
        self.facts.before_optimizers(self.variables.optimizers(self.model))

    @UPDATES.fence("saving facts of a step")
    def _save_facts(self) -> None:
        found, model = self.facts, self.model
        found.given.update(self.variables.traced)
        found.after_optimizers(self.variables.optimizers(model), self.steps == 1)
        if self.steps > 1:
            return
        trainable = variables_in(model, "trainable_variables")
        # Of those that optimizers were not seen to be given, the model's own trains those that can be trained.
        found.after_update(found.given.variables() or trainable)
        owned = {id(variable) for variable in self.variables.weights(model, self.changes).variables}
        told = [variable for variable in variables_in(model, "variables") if id(variable) in owned]
        if CollectionKeys.PARAMETERS in self.writer.collections_due():
            self._tell_of(told, trainable)

    def _tell_of(self, told: Sequence[Any], trainable: Sequence[Any]) -> None:
        """Save what is known of some variables, of which some can be trained, and of those that nothing trains."""
        variables, step, sample = self.variables, self.writer.position.step, self._look.sample
        unfrozen = variables.untrained.unfrozen.left(step, trainable, variables.given, sample)
        untracked = variables.untrained.untracked.left(step, variables.given, sample)
        marks = {facts.UNFROZEN: unfrozen, facts.UNTRACKED: {id(variable) for variable in untracked}}
        title, told = variables.title(self.model), [*told, *untracked]
        self.facts.tell_of_variables(title, variables.names(told), told, [*trainable, *untracked], marks=marks)

    @LOSS_FACTS.fence("saving what losses were given")
    def _save_losses(self) -> None:
        self.losses.save(self.variables.losses)

    def save_optimizers(self, optimizers: Sequence[Optimizer]) -> bool:
        """Save the variables of optimizers; whether that is done, because they could be read or nobody wants them."""
        found = self.variables.of_optimizers(self.model, optimizers, self.writer, self.changes)
        settings = {name: value for optimizer in optimizers for name, value in settings_of(optimizer).items()}
        if not self.writer.ever_wanted(frozenset((*found.names, *settings))):
            return True
        if not self.can_be_read(found):
            return False
        self.writer.save_tensors(found.names, found.variables)
        for name in settings.keys() - found.names:
            self.writer.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
            value = settings[name]
            self.writer.save_tensor_now(name, np.float32(value) if is_a(value, float) else value)
        return True

    def tell_why_no_gradients(self) -> None:
        """Say why the step had no gradients, though it applies those of each step, if that is known."""

    @GRADIENTS.fence("looking for gradients")
    def _tell_of_gradients(self) -> None:
        gradients = CollectionKeys.GRADIENTS
        if gradients not in self.writer.collections_due() or any(name.startswith("gradients/") for name in self.counts):
            return
        number = attribute(attribute(self.model, "optimizer"), "gradient_accumulation_steps")
        if is_a(number, int) and number > 1:
            guard.say_once(
                "gradient_accumulation_steps",
                f"the optimizer applies the mean gradient of {number} steps in the last of them: gradients are saved"
                " in those steps only",
            )
        else:
            self.tell_why_no_gradients()
