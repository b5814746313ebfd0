"""The scales by which a ``GradScaler`` multiplies losses in a saved step; what is saved is divided by them.

A scale belongs to the graph node that applied it: a program may have several scalers, add scaled losses up, or run a
backward pass that is not scaled at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch

from smd_agent.core.failure_domains import GRADIENTS
from smd_agent.framework.captured_step import Installed
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture.scaler_facts import ScalerFacts, scale_of
from smd_agent.pytorch.own_operations import apart, fence
from smd_agent.pytorch.torch_compile import is_compiling

NODES_OF_A_SUM = 32
"""Graph nodes looked at behind a tensor: a sum of some scaled losses, not the model behind them."""

Node = tuple[str, int]


def identity(node: Any) -> Node:
    """A graph node by its numbers: a reference would keep the graph, and with it the model, alive."""
    return node.name(), node._sequence_nr()


AboutToUnscale = Callable[[Any, float], object]
"""Is called with an optimizer, and the scale of its gradients, before they are unscaled."""


class Scaled(NamedTuple):
    """A loss that was scaled: its node before (None without one), its value before, and the scale."""

    before: Node | None
    value: torch.Tensor
    scale: float


class Scales:
    """Notes what the scalers of the process do while a step is saved.

    Args:
        facts: looks at the scalers themselves.
    """

    def __init__(self, facts: ScalerFacts) -> None:
        self._scaled: dict[Node, Scaled] = {}
        self._facts = facts

    def install(self, installed: Installed, about_to_unscale: AboutToUnscale) -> None:
        """Watch all classes of scalers until the step closes."""
        scalers = [*with_subclasses(torch.amp.GradScaler)]
        self._facts.install(installed, scalers)
        wrap_unscale = partial(_wrap_unscale, about_to_unscale)
        for scaler in scalers:
            for name, make in (("scale", self._wrap_scale), ("unscale_", wrap_unscale)):
                if name in vars(scaler):
                    installed.patch(scaler, name, make, why="gradients are saved without the loss scale")

    def scaled(self, tensor: torch.Tensor) -> Scaled | None:
        """The value that was scaled to make this tensor, None if it is not what a scaler returned."""
        return None if tensor.grad_fn is None else self._scaled.get(identity(tensor.grad_fn))

    def scale_behind(self, tensors: Iterable[torch.Tensor]) -> float:
        """The scale that a backward pass from these tensors puts on gradients, 1.0 if there is none."""
        if self._scaled:
            for node in nodes_behind(tensors):
                found = self._scaled.get(node)
                if found is not None:
                    return found.scale
        return 1.0

    def _wrap_scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            if is_compiling():
                return original(scaler, outputs)
            before = _without_graphs(outputs)
            result = original(scaler, outputs)
            self._note(scaler, before, result)
            return result

        return scale

    @fence("reading the scale of a loss", GRADIENTS)
    def _note(self, scaler: Any, before: list[tuple[Node | None, torch.Tensor]], scaled: Any) -> None:
        scale = scale_of(scaler)
        if scale is None:
            return
        for (node, value), after in zip(before, tensors_in(scaled), strict=False):
            if after.grad_fn is not None:
                self._scaled[identity(after.grad_fn)] = Scaled(node, value, scale)


def _wrap_unscale(about_to_unscale: AboutToUnscale, original: Callable[..., Any]) -> Callable[..., Any]:
    def unscale(scaler: Any, optimizer: Any) -> Any:
        if not is_compiling():
            _before_unscaling(about_to_unscale, scaler, optimizer)
        return original(scaler, optimizer)

    return unscale


@fence("saving gradients before they are unscaled", GRADIENTS)
def _before_unscaling(about_to_unscale: AboutToUnscale, scaler: Any, optimizer: Any) -> None:
    scale = scale_of(scaler)
    if scale is not None:
        about_to_unscale(optimizer, scale)


def unscaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    """The tensor divided by the scale, the way a scaler does it; the tensor itself if there is nothing to divide."""
    return tensor if scale == 1.0 else tensor.detach() * (1.0 / scale)


@apart
def _without_graphs(outputs: Any) -> list[tuple[Node | None, torch.Tensor]]:
    found = tensors_in(outputs)
    return [(None if one.grad_fn is None else identity(one.grad_fn), one.detach()) for one in found]


def with_subclasses(owner: type[Any]) -> Iterator[type[Any]]:
    """A class and all classes below it."""
    yield owner
    subclasses: list[type[Any]] = owner.__subclasses__()
    for subclass in subclasses:
        yield from with_subclasses(subclass)


def nodes_behind(tensors: Iterable[torch.Tensor], most: int = NODES_OF_A_SUM) -> Iterator[Node]:
    """The graph nodes behind tensors, the nearest first; so many at most."""
    nodes = [tensor.grad_fn for tensor in tensors]
    for _ in range(most):
        if not nodes:
            return
        node: Any = nodes.pop(0)
        if node is not None:
            yield identity(node)
            nodes.extend(source for source, _ in node.next_functions)
