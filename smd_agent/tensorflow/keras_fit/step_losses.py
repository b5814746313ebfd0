"""Losses that a training step of ``fit`` differentiates, and what they depend on: seen while the step is traced.

A loss is looked at where the program works it out, see ``graph.own_losses``: where the model's class has a
``train_step`` or a ``compute_loss`` of its own, or was compiled with a loss that is none of Keras's. And where layers
of Keras 3 hold variables of TensorFlow's, of which that does not know, it is seen whether the loss depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import tensorflow as tf

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras.backend import Current
from smd_agent.framework.keras.loss_inputs import LOSS
from smd_agent.framework.keras.plain_access import (
    attribute,
    flat_layers,
    is_of_keras,
    own_attributes,
    variables_in,
)
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.loss_facts import CALLS
from smd_agent.framework.plain_access import elements_of, is_a, pairs_of
from smd_agent.framework.training_facts import USAGE
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.tensorflow.graph.loss_graph import LossGraph, inner_variable
from smd_agent.tensorflow.graph.own_losses import OwnLoss, own_loss_of
from smd_agent.tensorflow.graph.traced_tensors import TensorTaps
from smd_agent.tensorflow.keras_fit.step_capture import TensorflowCapture
from smd_agent.tensorflow.keras_fit.versions import Flavour, replace_untraced
from smd_agent.tensorflow.types import Graph, Nested, Tape, Variable
from smd_agent.tensorflow.variable_names import is_variable

_OWN = ("train_step", "compute_loss")
# The Keras from which on a layer does not know of variables that are none of Keras's.
_TRACKS_OWN_ONLY = 3


class StepLosses:
    """Sees what tapes differentiate in the steps of one Keras.

    Args:
        flavour: the Keras.
        taps: gets what is looked at when a step runs.
        current: where the running step is kept.
    """

    def __init__(self, flavour: Flavour, taps: TensorTaps, current: Current[TensorflowCapture]) -> None:
        self._tracks = flavour.version < _TRACKS_OWN_ONLY
        self._taps = taps
        self._current = current
        # Names of what was looked at, by graph: some ask for the gradient of each variable by itself.
        self._targets: WeakIdentityMap[Graph, set[str]] = WeakIdentityMap()

    def install(self) -> None:
        """Begin to look; called once."""
        why = "losses that a train_step works out itself are looked at"
        replace_untraced(tf.GradientTape, "gradient", self._around_gradient, why=why)

    def _around_gradient(self, original: Call) -> Call:
        def gradient(tape: Tape, target: Nested, sources: Nested, *args: object, **kwargs: object) -> Any:
            result = original(tape, target, sources, *args, **kwargs)
            step = self._current.step
            if step is not None and step.mode is ModeKeys.TRAIN and not tf.executing_eagerly():
                self._saw(target, sources, result)
            return result

        return gradient

    @LOSS_FACTS.fence("looking at a loss that is not the framework's")
    def _saw(self, target: Nested, sources: Nested, gradients: Nested) -> None:
        step = self._current.step
        if step is None:
            return
        has_own = _has_own_loss(step.model)
        held = [] if self._tracks else [*_held_by(step.model)]
        if not has_own and not held:
            return
        found = zip(tf.nest.flatten(sources), tf.nest.flatten(gradients, expand_composites=False), strict=False)
        trained = [one for one, gradient in found if gradient is not None and is_variable(one)]
        before = LossGraph(tf.compat.v1.get_default_graph(), tf.nest.flatten(target), trained)
        if has_own and trained:
            losses = self._taps.own_losses.get(step.variables) or self._taps.own_losses.set(step.variables, {})
            self._add_losses(losses, before)
        own = {id(inner_variable(variable)) for variable in trained}
        step.variables.untrained.untracked.add(one for one in before.reached(held) if id(one) not in own)

    def _add_losses(self, losses: dict[str, OwnLoss | None], before: LossGraph) -> None:
        for tensor in before.targets:
            known = self._targets.get(tensor.graph) or self._targets.set(tensor.graph, set())
            if tensor.name in known or len(known) >= CALLS:
                continue
            # Keras 2 has a step traced twice, of which the latter is run.
            name = f"{USAGE}{LOSS}own_loss_{len(known)}"
            known.add(tensor.name)
            losses[name] = loss = own_loss_of(before, tensor)
            for number, output in enumerate(() if loss is None else loss.sides):
                self._taps.add_side(name, number, output)


def _held_by(model: Model) -> Iterator[Variable]:
    """The variables of TensorFlow's that a model's layers hold, and of which they do not know.

    One number alone is left out: it is mostly a weight in the loss, which the program changes now and then.
    """
    known = {id(inner_variable(one)) for one in variables_in(model, "variables")}
    held = [one for layer in flat_layers(model) for value in own_attributes(layer).values() for one in _each(value)]
    for one in {id(one): one for one in held}.values():
        is_trained = attribute(one, "trainable", False) and one.dtype.is_floating and id(one) not in known
        if is_trained and (one.shape.num_elements() or 0) > 1:
            yield one


def _each(value: object) -> Iterator[Any]:
    """The variables of TensorFlow's in an attribute: it, or those in a list or dict."""
    for one in (value, *elements_of(value), *(one for _, one in pairs_of(value))):
        if is_a(one, tf.Variable):
            yield one


def _has_own_loss(model: Model) -> bool:
    """True if the program has a hand in what a model's steps differentiate."""
    for cls in type(model).__mro__:
        if is_of_keras(cls):
            break
        if any(name in vars(cls) for name in _OWN):
            return True
    return any(not _is_known(one) for one in tf.nest.flatten(attribute(model, "loss")))


def _is_known(loss: Any) -> bool:
    """True if a loss that a model was compiled with is Keras's, or none."""
    if loss is None or is_a(loss, str):
        return True
    return is_of_keras(loss if type(loss) is FunctionType else type(loss))
