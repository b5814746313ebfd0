"""Calls of Keras's layers and models: who listens is told of each, in a compiled step while that is traced."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from smd_agent.framework.replaced_functions import replace
from smd_agent.tensorflow.types import Function


class LayerCall(NamedTuple):
    """A call of a layer.

    Attributes:
        base: Keras's class of layers.
        layer: it.
        args, kwargs: as it is called.
    """

    base: type
    layer: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Listener(Protocol):
    """Is told of layers."""

    def awaits_layer(self) -> bool:
        """True if it wants to be told now; asked before every call."""

    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called."""

    def after_layer(self, call: LayerCall, result: Any) -> None:
        """The layer has returned this."""

    def layer_failed(self, call: LayerCall) -> None:
        """The layer has raised an error."""


listeners: list[Listener] = []


def watch_calls(owner: type) -> Function:
    """Have listeners told of the calls of a class's layers; returns what stands in the place of the method."""

    def around(original: Function) -> Function:
        def called(layer: Any, *args: Any, **kwargs: Any) -> Any:
            told = [listener for listener in listeners if listener.awaits_layer()]
            if not told:
                return original(layer, *args, **kwargs)
            call = LayerCall(owner, layer, args, kwargs)
            for listener in told:
                listener.before_layer(call)
            try:
                result = original(layer, *args, **kwargs)
            except BaseException:
                for listener in told:
                    listener.layer_failed(call)
                raise
            for listener in told:
                listener.after_layer(call, result)
            return result

        return called

    return replace(owner, "__call__", around, why="it is seen what layers are given and return")
