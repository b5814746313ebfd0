"""One saved step of a Keras model: what is read before it runs, while it runs, and from what it returns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from smd_agent import guard, session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras_names import numbered
from smd_agent.tensorflow.arrays import Rows
from smd_agent.tensorflow.taps import Part

if TYPE_CHECKING:
    from smd_agent.tensorflow.hook import TensorflowHook
    from smd_agent.tensorflow.keras_step import StepFunction
    from smd_agent.tensorflow.keras_watch import KerasWatch


class Capture:
    """Collects the values of one step and hands them to the hook.

    Args:
        hook: to save with; a step of it is open.
        watch: of the model's Keras.
        step: the function that runs the step.
    """

    def __init__(self, hook: TensorflowHook, watch: KerasWatch, step: StepFunction) -> None:
        self._hook = hook
        self._watch = watch
        self._step = step
        self._counts: Counter[str] = Counter()
        self._weights_saved = False
        self._optimizers_saved = False
        self._changes: object = watch.changes

    def begin(self) -> None:
        """The step begins.

        A compiled one reads the variables when it is about to run: before it is traced for the first time, Keras 3 may
        not have given them values, and reading would make some up.
        """
        model = self._step.model
        if model.run_eagerly or tf.config.functions_run_eagerly():
            # Nothing tells when such a model gets other variables.
            self._changes = object()
        if getattr(model, "built", False) and model.run_eagerly:
            self.before_update()

    @session.fence("saving weights")
    def before_update(self) -> None:
        """Save the variables as they stand before the step changes them.

        New ones get their values from the first of the functions that a first step runs.
        """
        if not self._weights_saved:
            self._weights_saved = self._save_weights()
        if not self._optimizers_saved:
            self._optimizers_saved = self._step.mode is not ModeKeys.TRAIN or self._save_optimizers()

    def _save_weights(self) -> bool:
        step = self._step
        found = step.variables.weights(step.model, self._changes)
        if not found.can_be_read(self._hook):
            return False
        self._hook.save_tensors(found.names, found.variables)
        return bool(found.names)

    def _save_optimizers(self) -> bool:
        step, hook = self._step, self._hook
        if CollectionKeys.OPTIMIZER_VARIABLES not in hook.include_collections:
            return True
        found = step.variables.of_optimizers(step.model, step.optimizers(), hook, self._changes)
        if not found.can_be_read(hook):
            return False
        hook.save_tensors(found.names, found.variables)
        return True

    @session.fence("saving a tensor of a step")
    def value(self, name: str, value: Any, shape: tuple[int, ...] = ()) -> None:
        """Save a tensor that came up while the step ran eagerly. ``shape`` is that of a gradient's variable."""
        if isinstance(value, tf.IndexedSlices):
            value = Rows(value.values, value.indices, shape)
        self._save([(self._number(name), value)])

    @session.fence("saving what a compiled step computed")
    def take(self, keys: Sequence[Part | None], branches: Sequence[int | None], values: Sequence[Any]) -> None:
        """Save what a compiled function returned beside its own outputs."""
        found: Iterator[tuple[Part | None, Any]] = (
            (key, value)
            for key, branch, value in zip(keys, branches, values, strict=True)
            if branch is None or bool(values[branch])
        )
        pairs: list[tuple[str, Any]] = []
        for key, value in found:
            if key is None:
                continue
            if key.part == "values":
                rows, indices = next(found)
                assert rows is not None
                pairs.append((self._number(key.name), Rows(value, indices, rows.shape)))
            else:
                pairs.append((self._number(key.name), value))
        self._save(pairs)

    @session.fence("saving the logs of a step")
    def finish(self, outputs: Any) -> None:
        """The step is done and has returned this."""
        step = self._step
        if step.mode is ModeKeys.TRAIN:
            self._tell_of_gradients()
        if step.mode is not ModeKeys.PREDICT and isinstance(outputs, Mapping):
            self._hook.save_logs(outputs, tf.is_tensor)

    def _tell_of_gradients(self) -> None:
        """Say why there are none, if there are none."""
        gradients = CollectionKeys.GRADIENTS
        if gradients not in self._hook.collections_due() or any(name.startswith("gradients/") for name in self._counts):
            return
        number = getattr(getattr(self._step.model, "optimizer", None), "gradient_accumulation_steps", None)
        if isinstance(number, int) and number > 1:
            guard.say_once(
                "gradient_accumulation_steps",
                f"the optimizer applies the mean gradient of {number} steps in the last of them: gradients are saved"
                " in those steps only",
            )
        elif any(name.startswith("gradients/") for name in self._watch.book.unreachable):
            guard.say_once(
                "compiled loop",
                "gradients that a train_step computes in a loop over tensors cannot be saved",
            )

    def _number(self, name: str) -> str:
        count = self._counts[name]
        self._counts[name] += 1
        return numbered(name, count)

    def _save(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._hook.save_tensors([name for name, _ in pairs], [value for _, value in pairs])
