"""Losses of one saved step in the graph of autograd: which are saved, and what those are made of that are trained."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from smd_agent.framework.loss_links import comes_from, origin
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture import functional_losses
from smd_agent.pytorch.capture.loss_scaling import Node, identity
from smd_agent.pytorch.capture.trained_losses import FunctionCall, TrainedLosses
from smd_agent.pytorch.tracing import probe

_COMPILED = "CompiledFunctionBackward"

_OF_ONE_VALUE = {"AliasBackward0", "CloneBackward0", "DivBackward0", "MulBackward0", "ToCopyBackward0"}
_RESCALING = {
    *_OF_ONE_VALUE,
    "MeanBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SumBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
}

_next_number = probe(torch, "autograd._get_sequence_nr", 0)


class KnownLosses:
    """The losses of one step that are saved.

    Attributes:
        any: whether there is one.
    """

    def __init__(self) -> None:
        self.any = False
        self._nodes: set[Node] = set()
        self._without_graph: dict[int, weakref.ref[torch.Tensor]] = {}

    def add(self, loss: Any) -> None:
        """Remember a loss that is saved."""
        for tensor in tensors_in(loss):
            self.any = True
            if tensor.grad_fn is not None:
                self._nodes.add(identity(tensor.grad_fn))
            else:
                self._without_graph[id(tensor)] = weakref.ref(tensor)

    def add_node(self, node: Node) -> None:
        """Remember a loss by the node that has made it."""
        self._nodes.add(node)

    def has_node(self, node: Node) -> bool:
        """True if what this node has made is saved."""
        return node in self._nodes

    def knows(self, tensor: torch.Tensor) -> bool:
        """True if a tensor is a loss that is saved, or one rescaled."""
        if tensor.grad_fn is None:
            known = self._without_graph.get(id(tensor))
            return known is not None and known() is tensor
        return comes_from(tensor.grad_fn, lambda node: identity(node) in self._nodes, _rescaled)


class LossOrigins:
    """The values that the losses of one step may be made of.

    Args:
        trained: learns what those are made of that backward passes start from.
        called: gives the titles of the models that were called in the step.
    """

    def __init__(self, trained: TrainedLosses, called: Callable[[], Iterable[str]]) -> None:
        self._trained = trained
        self._called = called
        self._places: dict[Node, tuple[str, object]] = {}
        self._calls: dict[Node, FunctionCall] = {}
        # The number of the first node that was made after a model had returned for the first time.
        self._made_until = 0

    def model_returned(self) -> None:
        """A model has returned."""
        self._made_until = self._made_until or _next_number()

    def add_place(self, node: Node, title: str, place: object) -> None:
        """The result of this node stands at this place of what a model has returned."""
        self._places[node] = title, place

    def add_call(self, node: Node, call: FunctionCall) -> None:
        """The result of this node is what a functional loss has returned."""
        self._calls[node] = call

    def call_of(self, node: Node) -> FunctionCall:
        """The functional loss that has made what this node has."""
        return self._calls[node]

    def learn(self, start: torch.Tensor) -> Node | None:
        """Learn what the start of a backward pass is made of; the node that has made that, if it is one of those."""
        known = {*self._places, *self._calls}
        node = origin(start.grad_fn, lambda node: identity(node) if identity(node) in known else None, _rescaled)
        titles = list(self._called())
        if node is None:
            self._learn_of_graph(titles, start)
        elif node in self._places:
            self._trained.learn_place(*self._places[node])
        else:
            self._trained.learn_function(titles, self._calls[node])
        return node

    def _learn_of_graph(self, titles: list[str], start: torch.Tensor) -> None:
        def known(node: Any) -> str | None:
            name: str = node.name()
            return name if functional_losses.calls_that_make(name) else None

        name = origin(start.grad_fn, known, _rescaled)
        if origin(start.grad_fn, lambda node: node.name() == _COMPILED or None, _rescaled_value):
            self._trained.learn_unseen(titles, "comes out of a compiled function")
        elif (
            name is None
            and self._made_until
            and start.grad_fn is not None
            and _number(start.grad_fn) < self._made_until
        ):
            self._trained.learn_unseen(titles, "is worked out inside of a model that does not return it")
        for call in functional_losses.calls_that_make(name or ""):
            self._trained.learn_function(titles, call)


def _rescaled(node: Any, operations: AbstractSet[str] = _RESCALING) -> Any:
    inputs = [source for source, _ in node.next_functions if source is not None]
    return inputs[0] if node.name() in operations and len(inputs) == 1 else None


def _number(node: Any) -> int:
    number: int = node._sequence_nr()
    return number


def _rescaled_value(node: Any) -> Any:
    """The same for what has one value all along."""
    return _rescaled(node, _OF_ONE_VALUE)
