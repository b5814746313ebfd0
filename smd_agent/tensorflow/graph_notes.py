"""What optimizers of ``tf.compat.v1`` were asked while a graph was built.

Notes hold names, not tensors: a tensor would keep its graph alive. Nothing is added to the graph, neither operations
(they would shift the seeds of random ones) nor collections (they would stand in its checkpoints).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from smd_agent import session
from smd_agent.core.modes import ModeKeys

WATCHED = "_smd_agent_watched"

ESTIMATOR = "tensorflow_estimator.python.estimator.estimator"
"""The module of the class whose instances all estimators are."""


@dataclass
class GraphNotes:
    """What is known of one graph.

    losses: names of the tensors that are minimised.
    gradients: name of the gradient's tensor or tensors (values and indices of one with rows) by name of the variable.
    updates: names of the operations that apply gradients.
    optimizer_variables: names of the optimizers' own variables.
    mode: what an estimator built it for.
    """

    losses: dict[str, None] = field(default_factory=dict)
    gradients: dict[str, tuple[str, ...]] = field(default_factory=dict)
    updates: set[str] = field(default_factory=set)
    optimizer_variables: set[str] = field(default_factory=set)
    mode: ModeKeys | None = None


_used: list[str] = []
_notes: weakref.WeakKeyDictionary[Any, GraphNotes] = weakref.WeakKeyDictionary()


def notes_on(graph: Any) -> GraphNotes:
    """What is known of a graph; empty at first."""
    notes = _notes.get(graph)
    if notes is None:
        notes = _notes[graph] = GraphNotes()
    return notes


def saw_any_optimizer() -> bool:
    """Whether an optimizer has been used in any graph."""
    return bool(_used)


def watch_optimizers(owner: Any) -> None:
    """Note what this optimizer, or every one of this class, is asked.

    Wrapping one twice changes nothing.
    """
    if getattr(owner, WATCHED, False):
        return
    setattr(owner, WATCHED, True)
    compute, apply = owner.compute_gradients, owner.apply_gradients
    one = not isinstance(owner, type)

    @functools.wraps(compute)
    def compute_gradients(*args: Any, **kwargs: Any) -> Any:
        pairs = compute(*args, **kwargs)
        loss = kwargs.get("loss", args[0 if one else 1] if len(args) > (0 if one else 1) else None)
        _computed(loss, pairs)
        return pairs

    @functools.wraps(apply)
    def apply_gradients(*args: Any, **kwargs: Any) -> Any:
        pairs, args, kwargs = _pairs_of(args, kwargs, 0 if one else 1)
        update = apply(*args, **kwargs)
        _applied(owner if one else args[0], pairs, update)
        return update

    owner.compute_gradients = compute_gradients
    owner.apply_gradients = apply_gradients


def _pairs_of(args: tuple[Any, ...], kwargs: dict[str, Any], at: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    # They may be a generator, which only one of us can read.
    if len(args) > at:
        pairs = list(args[at]) if not isinstance(args[at], (list, tuple)) else args[at]
        return pairs, (*args[:at], pairs, *args[at + 1 :]), kwargs
    pairs = kwargs.get("grads_and_vars")
    if pairs is not None and not isinstance(pairs, (list, tuple)):
        pairs = list(pairs)
        kwargs = {**kwargs, "grads_and_vars": pairs}
    return pairs or (), args, kwargs


@session.fence("noting an optimizer's gradients")
def _computed(loss: Any, pairs: Iterable[tuple[Any, Any]]) -> None:
    if tf.executing_eagerly():
        return
    if isinstance(loss, tf.Tensor):
        notes_on(loss.graph).losses[loss.name] = None
    for gradient, variable in pairs:
        _note_gradient(gradient, variable, replace=True)


@session.fence("noting what an optimizer applies")
def _applied(optimizer: Any, pairs: Iterable[tuple[Any, Any]], update: Any) -> None:
    if tf.executing_eagerly():
        return
    for gradient, variable in pairs:
        # Of gradients that the program got elsewhere (tf.gradients), these are the only ones seen.
        _note_gradient(gradient, variable, replace=False)
    operation = getattr(update, "op", update)
    if isinstance(operation, tf.Operation):
        notes = notes_on(operation.graph)
        notes.updates.add(operation.name)
        _used[:] = [type(optimizer).__name__]
        notes.optimizer_variables.update(variable.name for variable in optimizer.variables())


def _note_gradient(gradient: Any, variable: Any, replace: bool) -> None:
    if isinstance(gradient, tf.IndexedSlices):
        parts: tuple[Any, ...] = (gradient.values, gradient.indices)
    elif isinstance(gradient, tf.Tensor):
        parts = (gradient,)
    else:
        return
    known = notes_on(parts[0].graph).gradients
    if replace or variable.name not in known:
        known[variable.name] = tuple(part.name for part in parts)


def note_modes(estimator_class: Any) -> None:
    """Note of each graph that an estimator builds whether it is to train, evaluate or predict.

    tensorflow_estimator 2.15, its last release, builds all of them in ``_call_model_fn``.
    """
    if getattr(estimator_class, WATCHED, False):
        return
    setattr(estimator_class, WATCHED, True)
    call: Callable[..., Any] = estimator_class._call_model_fn
    modes = {"train": ModeKeys.TRAIN, "eval": ModeKeys.EVAL, "infer": ModeKeys.PREDICT}

    @functools.wraps(call)
    def call_model_fn(estimator: Any, features: Any, labels: Any, mode: str, config: Any) -> Any:
        notes_on(tf.compat.v1.get_default_graph()).mode = modes.get(mode)
        return call(estimator, features, labels, mode, config)

    estimator_class._call_model_fn = call_model_fn
