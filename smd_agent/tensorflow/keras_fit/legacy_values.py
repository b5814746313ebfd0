"""Values that a script, as smdebug's patched TensorFlow did, tells by keys of smdebug's: names and collections.

``smdebug_x``, ``smdebug_y`` and ``smdebug_y_pred`` hold what a model was given, its labels and its predictions,
``smdebug_gradients`` gradients, ``smdebug_layer_outputs`` what goes into layers and comes out of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.tensorflow.arrays import Rows
from smd_agent.tensorflow.variable_names import gradient_name, is_variable, plain_name

INPUTS = "smdebug_x"
PREDICTIONS = "smdebug_y_pred"
_LABELS = "smdebug_y"
_GRADIENTS = "smdebug_gradients"
_LAYERS = "smdebug_layer_outputs"

_OF_MODEL = {
    INPUTS: (CollectionKeys.INPUTS, "inputs"),
    _LABELS: (CollectionKeys.OUTPUTS, "labels"),
    PREDICTIONS: (CollectionKeys.OUTPUTS, "predictions"),
}


class Told(NamedTuple):
    """A value with its name, and the collection that it is in."""

    collection: str
    name: str
    value: Any


def legacy_values(logs: Mapping[str, Any], variables: Iterable[Any]) -> Iterator[Told]:
    """The values in logs that have keys of smdebug's; other keys are passed over.

    Args:
        logs: values by key. A list or dict of a model's tensors gives ``inputs_0``, ``inputs_1`` and so on. Gradients
            are pairs of a variable, or its name, and the gradient; or gradients alone, in the order of ``variables``.
            Of layers there are triples: name, list of inputs, output or list of outputs.
        variables: those that the model trains.
    """
    for key, value in logs.items():
        if value is None:
            continue
        if key in _OF_MODEL:
            collection, name = _OF_MODEL[key]
            parts = tf.nest.flatten(value) if isinstance(value, (dict, list)) else value
            yield from _numbered(collection, name, parts)
        elif key == _GRADIENTS:
            yield from _gradients(list(value), variables)
        elif key == _LAYERS:
            for layer, inputs, outputs in value:
                name = _text(layer)
                alone = isinstance(inputs, (list, tuple)) and len(inputs) == 1
                yield from _numbered(CollectionKeys.LAYERS, f"{name}/inputs", inputs[0] if alone else inputs)
                yield from _numbered(CollectionKeys.LAYERS, f"{name}/outputs", outputs)


def _numbered(collection: str, name: str, value: Any) -> Iterator[Told]:
    if not isinstance(value, (list, tuple)):
        yield Told(collection, name, value)
        return
    for number, part in enumerate(value):
        yield Told(collection, f"{name}_{number}", part)


def _gradients(gradients: list[Any], variables: Iterable[Any]) -> Iterator[Told]:
    pairs = gradients
    if gradients and not isinstance(gradients[0], tuple):
        pairs = list(zip(variables, gradients, strict=False))
    for variable, gradient in pairs:
        if gradient is None:
            continue
        value = gradient
        if isinstance(gradient, tf.IndexedSlices) and is_variable(variable):
            value = Rows(gradient.values, gradient.indices, tuple(variable.shape))
        name = plain_name(variable) if is_variable(variable) else _text(variable).partition(":")[0]
        yield Told(CollectionKeys.GRADIENTS, gradient_name(name), value)


def _text(name: Any) -> str:
    """A name that may be a tensor or bytes."""
    text = np.asarray(name).item() if isinstance(name, tf.Tensor) else name
    return text.decode() if isinstance(text, bytes) else str(text)
