"""Notes on the graphs of ``tf.compat.v1``: what optimizers were asked while they were built.

Notes hold names, not tensors: a tensor would keep its graph alive. Nothing is added to the graph, neither operations
(they would shift the seeds of random ones) nor collections (they would stand in its checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from smd_agent.core.failure_domains import GRADIENTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras.names import variables_of
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import is_replaced, replace
from smd_agent.framework.weak_references import Reference, WeakIdentityMap
from smd_agent.tensorflow.optimizer_calls import OptimizerCall, listeners
from smd_agent.tensorflow.types import Function, Graph, Nested, Optimizer, Variable

Pairs = Iterable[tuple[object, Variable]]
"""Gradients, some of them None, and the variables whose they are."""

# What the settings are called in the run, and by optimizers of ``tf.compat.v1`` as tensors of the graph.
_SETTINGS = {
    "lr": ("_learning_rate_tensor", "_lr_t"),
    "momentum": ("_momentum_tensor",),
    "beta_1": ("_beta1_t",),
    "beta_2": ("_beta2_t",),
    "eps": ("_epsilon_t", "_epsilon_tensor"),
}

ESTIMATOR = "tensorflow_estimator.python.estimator.estimator"
"""The module of the class whose instances all estimators are."""


@dataclass(eq=False)
class OptimizerNotes:
    """The notes on one optimizer of a graph; they stand for it, as the program may let it go.

    optimizer: it, weakly.
    updates: names of the operations by which it applies gradients.
    given: whether there is a gradient, by name of the variable.
    settings: names of the tensors that have its settings, by setting.
    """

    optimizer: Reference[Optimizer]
    updates: set[str] = field(default_factory=set)
    given: dict[str, bool] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass
class GraphNotes:
    """The notes on one graph.

    losses: names of the tensors that are minimised.
    gradients: name of the gradient's tensor or tensors (values and indices of one with rows) by name of the variable.
    updates: names of the operations that apply gradients.
    optimizers: those that apply them.
    optimizer_variables: names of the optimizers' own variables.
    mode: what an estimator built it for.
    """

    losses: dict[str, None] = field(default_factory=dict)
    gradients: dict[str, tuple[str, ...]] = field(default_factory=dict)
    updates: set[str] = field(default_factory=set)
    optimizers: list[OptimizerNotes] = field(default_factory=list)
    optimizer_variables: set[str] = field(default_factory=set)
    mode: ModeKeys | None = None


_used: list[str] = []
_notes: WeakIdentityMap[Graph, GraphNotes] = WeakIdentityMap()


def notes_on(graph: Graph) -> GraphNotes:
    """The notes on a graph; empty at first."""
    return _notes.get(graph) or _notes.set(graph, GraphNotes())


def saw_any_optimizer() -> bool:
    """True if an optimizer has been used in any graph."""
    return bool(_used)


def watch_optimizers() -> None:
    """Note what every optimizer is asked. Repeating it is harmless."""
    owner = tf.compat.v1.train.Optimizer
    if not is_replaced(owner, "apply_gradients"):
        replace(owner, "compute_gradients", _around_compute, why="losses and gradients are known by name")
        replace(owner, "apply_gradients", _around_apply, why="a session's run that applies gradients is a step")
        listeners.append(_KerasUpdates())


class _KerasUpdates:
    """Notes what Keras's optimizers are asked in a graph that a session runs."""

    def awaits_update(self) -> bool:
        """True if such a graph is built."""
        return not tf.executing_eagerly() and not tf.compat.v1.get_default_graph().building_function

    def before_update(self, call: OptimizerCall) -> None:
        """Nothing to do: the operation is not there yet."""

    def saw_learning_rate(self, optimizer: Optimizer, value: object) -> None:
        """Nothing to do: a regex reaches it in the graph."""

    def after_update(self, call: OptimizerCall, result: object) -> None:
        """The graph updates variables now."""
        _applied(call.optimizer, list(zip(call.gradients, call.variables, strict=True)), result)


def _around_compute(compute: Function) -> Function:
    def compute_gradients(*args: Any, **kwargs: Any) -> Any:
        pairs = compute(*args, **kwargs)
        _computed(kwargs.get("loss", args[1] if len(args) > 1 else None), pairs)
        return pairs

    return compute_gradients


def _around_apply(apply: Function) -> Function:
    def apply_gradients(*args: Any, **kwargs: Any) -> Any:
        pairs, args, kwargs = _pairs_of(args, kwargs)
        update = apply(*args, **kwargs)
        _applied(args[0], pairs, update)
        return update

    return apply_gradients


def _pairs_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Pairs, tuple[Any, ...], dict[str, Any]]:
    # They may be a generator, which only one of us can read.
    if len(args) > 1:
        pairs = _listed(args[1])
        return pairs, (args[0], pairs, *args[2:]), kwargs
    given = kwargs.get("grads_and_vars")
    if given is None:
        return (), args, kwargs
    pairs = _listed(given)
    return pairs, args, {**kwargs, "grads_and_vars": pairs}


def _listed(pairs: Pairs) -> Pairs:
    return pairs if is_a(pairs, (list, tuple)) else list(pairs)


@GRADIENTS.fence("noting an optimizer's gradients")
def _computed(loss: object, pairs: Pairs) -> None:
    if tf.executing_eagerly():
        return
    if is_a(loss, tf.Tensor):
        notes_on(loss.graph).losses[loss.name] = None
    for gradient, variable in pairs:
        _note_gradient(gradient, variable, known_better=True)


@GRADIENTS.fence("noting what an optimizer applies")
def _applied(optimizer: Optimizer, pairs: Pairs, update: object) -> None:
    if tf.executing_eagerly():
        return
    for gradient, variable in pairs:
        # Of gradients that the program got elsewhere (tf.gradients), these are the only ones seen.
        _note_gradient(gradient, variable, known_better=False)
    operation = attribute(update, "op", update)
    if is_a(operation, tf.Operation):
        notes = notes_on(operation.graph)
        notes.updates.add(operation.name)
        _used[:] = [type(optimizer).__name__]
        notes.optimizer_variables.update(variable.name for variable in variables_of(optimizer))
        _note_optimizer(notes, optimizer, pairs, operation.name)


def _note_optimizer(notes: GraphNotes, optimizer: Optimizer, pairs: Pairs, update: str) -> None:
    known = next((one for one in notes.optimizers if one.optimizer() is optimizer), None)
    if known is None:
        known = OptimizerNotes(Reference(optimizer))
        notes.optimizers.append(known)
        title_of(known, type(optimizer).__name__)
    known.updates.add(update)
    for gradient, variable in pairs:
        known.given[variable.name] = known.given.get(variable.name, False) or gradient is not None
    for setting, names in _SETTINGS.items():
        tensor = next((found for name in names if is_a(found := attribute(optimizer, name), tf.Tensor)), None)
        if tensor is not None:
            known.settings[setting] = tensor.name


def _note_gradient(gradient: object, variable: Variable, known_better: bool) -> None:
    if is_a(gradient, tf.IndexedSlices):
        parts: tuple[Any, ...] = (gradient.values, gradient.indices)
    elif is_a(gradient, tf.Tensor):
        parts = (gradient,)
    else:
        return
    known = notes_on(parts[0].graph).gradients
    if known_better or variable.name not in known:
        known[variable.name] = tuple(part.name for part in parts)


def note_modes(estimator_class: type) -> None:
    """Note of each graph that an estimator builds whether it is to train, evaluate or predict, and with which loss.

    tensorflow_estimator 2.15, its last release, builds all of them in ``_call_model_fn``. Repeating it is harmless.
    """
    modes = {"train": ModeKeys.TRAIN, "eval": ModeKeys.EVAL, "infer": ModeKeys.PREDICT}

    def noting(call: Function) -> Function:
        def call_model_fn(estimator: object, features: Nested, labels: Nested, mode: str, config: object) -> Any:
            notes = notes_on(tf.compat.v1.get_default_graph())
            notes.mode = modes.get(mode)
            built = call(estimator, features, labels, mode, config)
            loss = getattr(built, "loss", None)
            if is_a(loss, tf.Tensor):
                notes.losses[loss.name] = None
            return built

        return call_model_fn

    if not is_replaced(estimator_class, "_call_model_fn"):
        replace(estimator_class, "_call_model_fn", noting, why="a session's mode is that of the graph it runs")
