"""TensorFlow's collections: layers and variables can be added to them."""

from __future__ import annotations

import re

from smd_agent.core.collection import Collection as BaseCollection
from smd_agent.errors import SMDebugTypeError
from smd_agent.tensorflow.types import Layer
from smd_agent.tensorflow.variable_names import is_variable, plain_name


class Collection(BaseCollection):
    """A named group of tensors; layers, their outputs and variables can be added to it."""

    def add_keras_layer(self, layer: Layer, inputs: bool = False, outputs: bool = True) -> None:
        """Put a layer's inputs and outputs into the collection."""
        kinds = [kind for kind, wanted in (("inputs", inputs), ("outputs", outputs)) if wanted]
        self.include([f"^(.*/)?{re.escape(layer.name)}/{kind}(_[0-9]+)?$" for kind in kinds])

    def add(self, *tensors: object) -> None:
        """Put variables, or symbolic tensors of a functional model, into the collection; lists and sets are taken too.

        Raises:
            SMDebugTypeError: one of them is neither.
        """
        for tensor in tensors:
            if isinstance(tensor, (list, tuple, set)):
                self.add(*tensor)
            elif is_variable(tensor):
                self.include([f"(^|/)weights/{re.escape(plain_name(tensor))}:0$"])
            elif hasattr(tensor, "_keras_history"):
                history = tensor._keras_history
                layer = getattr(history, "operation", None) or history[0]
                self.include([f"^(.*/)?{re.escape(layer.name)}/outputs(_[0-9]+)?$"])
            else:
                kind = type(tensor).__name__
                raise SMDebugTypeError(f"a {kind} cannot be added to a collection: neither a variable nor an output")
