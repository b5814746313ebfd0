"""Calls of Keras's optimizers: who listens is told of the gradients and variables that they are given.

An optimizer is called once for each update, with all its variables: also with those that have no gradient, and before
it applies a weight decay. In a compiled step that is while the step is traced. One inside of another is told of too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import replace
from smd_agent.tensorflow.types import Function, Optimizer, Tensor


class OptimizerCall(NamedTuple):
    """A call of an optimizer: gradients, of which some are None, and their variables."""

    optimizer: Optimizer
    gradients: list[Any]
    variables: list[Any]


class Listener(Protocol):
    """Is told of updates."""

    def awaits_update(self) -> bool:
        """True if it wants to be told now; asked before every update."""

    def before_update(self, call: OptimizerCall) -> None:
        """An optimizer is about to update."""

    def saw_learning_rate(self, optimizer: Optimizer, value: Tensor) -> None:
        """The optimizer updates with this learning rate, which a schedule has given."""

    def after_update(self, call: OptimizerCall, result: object) -> None:
        """The optimizer has updated, and returned this: in a graph, the operation that updates."""


listeners: list[Listener] = []


def awaiting() -> list[Listener]:
    """The listeners that want to be told now."""
    return [listener for listener in listeners if listener.awaits_update()]


def watch_calls(owner: type, name: str) -> Function:
    """Have listeners told of the calls of a class's optimizers; returns what stands in the place of the method.

    Args:
        owner: defines the method.
        name: ``apply`` of Keras 3, ``apply_gradients`` of Keras 2.
    """
    read = _apply if name == "apply" else _apply_gradients

    def around(original: Function) -> Function:
        def called(optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            told = awaiting()
            if not told:
                return original(optimizer, *args, **kwargs)
            call, args, kwargs = read(optimizer, args, kwargs)
            for listener in told:
                listener.before_update(call)
            result = original(optimizer, *args, **kwargs)
            for listener in told:
                listener.after_update(call, result)
            return result

        return called

    return replace(owner, name, around, why="it is seen what optimizers update")


# Arguments that can be read only once are replaced by lists.


def _apply(
    optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[OptimizerCall, tuple[Any, ...], dict[str, Any]]:
    given: dict[str, Any] = {**dict(zip(("grads", "trainable_variables"), args, strict=False)), **kwargs}
    variables: Any = given.get("trainable_variables")
    if variables is None:
        variables = attribute(optimizer, "_trainable_variables", ())
    else:
        variables = given["trainable_variables"] = _again(variables)
    return OptimizerCall(optimizer, list(given.get("grads", ())), list(variables)), (), given


def _apply_gradients(
    optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[OptimizerCall, tuple[Any, ...], dict[str, Any]]:
    pairs = list(args[0] if args else kwargs.get("grads_and_vars", ()))
    call = OptimizerCall(optimizer, [gradient for gradient, _ in pairs], [variable for _, variable in pairs])
    return (call, (pairs, *args[1:]), kwargs) if args else (call, args, {**kwargs, "grads_and_vars": pairs})


def _again(values: Iterable[Any]) -> Any:
    return values if is_a(values, (list, tuple)) else list(values)
