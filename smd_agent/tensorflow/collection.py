"""TensorFlow's collections: layers, variables and what a graph computes can be added to them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.collection import Collection as BaseCollection
from smd_agent.tensorflow.types import Layer
from smd_agent.tensorflow.variable_names import is_symbolic, is_variable, plain_name


class Collection(BaseCollection):
    """A named group of tensors; layers, their outputs, variables and tensors of a graph can be added to it."""

    def add_keras_layer(self, layer: Layer, inputs: bool = False, outputs: bool = True) -> None:
        """Put a layer's inputs and outputs into the collection."""
        kinds = [kind for kind, wanted in (("inputs", inputs), ("outputs", outputs)) if wanted]
        self.include([f"^(.*/)?{re.escape(layer.name)}/{kind}(_[0-9]+)?$" for kind in kinds])

    def add(self, arg: object, *further: object) -> None:
        """Put variables, outputs of layers of a functional model, or what a graph computes into the collection.

        Lists, tuples and sets are taken too, and an operation stands for all that it computes. Anything else, such as
        an eager tensor, which has no name, is left out, and one line says so: ``save_tensor`` saves values.
        """
        for tensor in (arg, *further):
            if isinstance(tensor, (list, tuple, set)):
                self._add_all(tensor)
            elif is_variable(tensor):
                self.include([f"(^|/)weights/{re.escape(plain_name(tensor))}:0$"])
                self._add_by_name(f"{plain_name(tensor)}:0")
            elif hasattr(tensor, "_keras_history"):
                history = tensor._keras_history
                layer = getattr(history, "operation", None) or history[0]
                self.include([f"^(.*/)?{re.escape(layer.name)}/outputs(_[0-9]+)?$"])
            elif isinstance(tensor, tf.IndexedSlices):
                self.add(tensor.values)
            elif isinstance(tensor, tf.Operation):
                self._add_all(tensor.outputs)
            elif is_symbolic(tensor):
                self._add_by_name(tensor.name)
            else:
                kind = type(tensor).__name__
                line = f"{kind} is not added to {self.name}: neither a variable nor a tensor of a model or graph"
                guard.say_once(("not added", self.name, kind), line)

    def _add_all(self, tensors: Iterable[object]) -> None:
        for tensor in tensors:
            self.add(tensor)

    def _add_by_name(self, name: str) -> None:
        self.add_tensor_name(name)
        # Reductions are stored without the number of the output.
        self.add_tensor_name(name.rpartition(":")[0] or name)
