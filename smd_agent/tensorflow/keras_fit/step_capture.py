"""Saved step of a Keras model on TensorFlow: variables before it changes them, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import LOSS_FACTS, STEPS, WEIGHTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras.facts import title_in
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.keras.saved_step import KerasCapture, LogSaver
from smd_agent.framework.keras.types import Model
from smd_agent.framework.keras.variables import Listed, ModelVariables
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.training_facts import INPUT_DIGEST, USAGE
from smd_agent.tensorflow.arrays import Rows
from smd_agent.tensorflow.fact_adapters import Look
from smd_agent.tensorflow.graph.function_rewrite import Further
from smd_agent.tensorflow.graph.traced_tensors import INPUT, OF_A_LOSS, SETTING, SIDE, TensorPart, TensorTaps
from smd_agent.tensorflow.loss_calls import array_of

_OF_A_CALL = [CollectionKeys.INPUTS, CollectionKeys.OUTPUTS, CollectionKeys.INPUT_DIGESTS]
_NOT_CALLED = "a step of fit does not call the model, but parts of it"
_NO_USAGE = "of fit it is known of models that a step calls, of cross entropies, and of losses behind an activation"


class TensorflowCapture(KerasCapture):
    """Collects the values of one step and hands them to the hook.

    Args: see ``KerasCapture``.
        taps: tensors that came up while functions were traced.
    """

    def __init__(
        self,
        saver: LogSaver,
        model: Model,
        mode: ModeKeys,
        variables: ModelVariables,
        changes: object,
        taps: TensorTaps,
    ) -> None:
        super().__init__(saver, model, mode, variables, changes, Look())
        self._taps = taps
        taps.follow(saver)
        # Layers are seen while functions are traced, in whatever step that is.
        self.writer.axes = taps.axes
        self._weights_saved = False
        self._optimizers_saved = False
        self._sizes: dict[str, dict[int, int]] = {}

    def begin(self, arguments: Sequence[object]) -> None:
        """The step begins.

        A compiled one reads the variables when it is about to run: before it is traced for the first time, Keras 3 may
        not have given them values, and reading would make some up.
        """
        run_eagerly = bool(attribute(self.model, "run_eagerly", False))
        if run_eagerly or tf.config.functions_run_eagerly():
            # Nothing tells when such a model gets other variables.
            self.changes = object()
        if attribute(self.model, "built", False) and run_eagerly:
            self.before_update()

    @WEIGHTS.fence("saving weights")
    def before_update(self) -> None:
        """Save the variables as they stand before the step changes them.

        New ones get their values from the first of the functions that a first step runs.
        """
        if not self._weights_saved:
            self._weights_saved = self.save_weights()
        if not self._optimizers_saved:
            self._optimizers_saved = self.mode is not ModeKeys.TRAIN or self.save_optimizers(
                self.variables.optimizers(self.model)
            )

    def can_be_read(self, found: Listed) -> bool:
        """True if those that the step saves have values.

        New variables are empty until TensorFlow runs the function that gives them their values.
        """
        if not found.has_values:
            pairs: Iterator[tuple[str, Any]] = zip(found.names, found.variables, strict=True)
            updates = self.facts.wants_updates
            wanted = [variable for name, variable in pairs if updates or self.writer.wants(name)]
            if not all(variable.numpy().shape == tuple(variable.shape) for variable in wanted):
                return False
            found.has_values = bool(wanted)
        return True

    def finish(self, outputs: object) -> None:
        """The model's function has returned this."""
        super().finish(outputs)
        if self.mode is ModeKeys.TRAIN:
            self._save_own_losses()
            self._note_what_there_is_not()

    @LOSS_FACTS.fence("saving what a loss compares")
    def _save_own_losses(self) -> None:
        found = self._taps.own_losses.get(self.variables) if self.facts.usage.wanted_in_training else None
        for name, loss in (found or {}).items():
            numbers = {} if loss is None else loss.facts_of(self._sizes.get(name, {}))
            if numbers:
                self.facts.usage.save(name.removeprefix(USAGE), numbers)

    @LOSS_FACTS.fence("noting what a step does not have")
    def _note_what_there_is_not(self) -> None:
        if self.facts.usage.wanted and not self.facts.usage.any:
            self.writer.cannot_have([CollectionKeys.USAGE], _NO_USAGE)
        if not self._was_called():
            self.writer.cannot_have(_OF_A_CALL, _NOT_CALLED)

    def _was_called(self) -> bool:
        """True if the step has called the model, as far as it is known."""
        out_of_reach = any(name.startswith(("inputs", INPUT_DIGEST)) for name in self._taps.unreachable)
        return out_of_reach or "inputs" in self.counts or self.facts.digests.any

    def is_tensor(self, value: object) -> bool:
        """True if a value is one of TensorFlow's tensors."""
        return bool(tf.is_tensor(value))

    def value(self, name: str, value: object, shape: tuple[int, ...] = ()) -> None:
        """Save a tensor that came up while the step ran eagerly. ``shape`` is that of a gradient's variable."""
        if is_a(value, tf.IndexedSlices):
            value = Rows(value.values, value.indices, shape)
        self.writer.save_tensor_now(self.number(name), value)

    @STEPS.fence("saving what a compiled step computed")
    def take(self, further: Sequence[Further], values: Sequence[object]) -> None:
        """Save what a compiled function returned beside its own outputs."""
        found: Iterator[tuple[TensorPart | None, object]] = (
            (one.key, value)
            for one, value in zip(further, values, strict=True)
            if one.branch is None or bool(values[one.branch])
        )
        pairs: list[tuple[str, object]] = []
        inputs: list[object] = []
        for key, value in found:
            if key is None:
                continue
            if key.part == INPUT:
                number, of_all = key.shape
                inputs = [*(inputs if number else ()), value]
                if len(inputs) == of_all:
                    self.facts.before_call(self.variables.title(self.model), self.model, inputs)
            elif key.part == SETTING:
                self.facts.saw_learning_rate(title_in(key.name), value)
            elif key.part == SIDE:
                self._sizes.setdefault(key.name, {})[key.shape[0]] = int(cast("Any", value).shape[0])
            elif key.part in OF_A_LOSS:
                self._saw_given(key, value)
            elif key.part == "values":
                rows, indices = next(found)
                assert rows is not None
                pairs.append((self.number(key.name), Rows(value, indices, rows.shape)))
            else:
                pairs.append((self.number(key.name), value))
        self.writer.save_tensors([name for name, _ in pairs], [value for _, value in pairs])

    def _saw_given(self, key: TensorPart, value: object) -> None:
        """A compiled function has returned what it has given a loss."""
        name = key.name.removeprefix(USAGE)
        if name in self.variables.losses and self.facts.usage.wanted:
            self.losses.add(name, key.part, array_of(value))

    def tell_why_no_gradients(self) -> None:
        """Say so if they come up where no tap leads."""
        if any(name.startswith("gradients/") for name in self._taps.unreachable):
            guard.say_once(
                "compiled loop",
                "gradients that a train_step computes in a loop over tensors cannot be saved",
            )
