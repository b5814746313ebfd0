"""The model being trained, held weakly: what it is called, its parameters and its layers, and what is known of it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.plain_access import is_a
from smd_agent.framework.tracked_model import TrackedModel
from smd_agent.pytorch.model.wrappers import (
    class_name,
    covering_child,
    named_layers,
    named_parameters,
    unwrapped,
    wrapper_chain,
)
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.structure import parts

_LOOKED_AT = 16
"""Parameters of a model that are looked at for updates."""


class TrackedModule(TrackedModel[torch.nn.Module]):
    """A model whose forward opens steps.

    Args:
        module: the outermost module that is called.
        title: the class name, of the owner if there is one, with a number behind it if another model has it already.
        first: whether names of layers need no title before them.
        owner: the module that the program calls this model as a part of, which gives it its names.
        path: what the model is called there.

    Attributes:
        title: the same.
        kind: the name of its class.
        name: what its inputs and outputs are called.
        thread: the one that found it, or has called it last in a step that is saved.
        called: whether it has been called in such a step, from no other model.
        busy: whether a call of it is being captured.
        by_gradients: whether it gets gradients in evaluation mode; then gradients being enabled tells TRAIN from EVAL.
        by_mode: whether its training calls it without gradients, too; then its mode alone tells TRAIN from EVAL.
        without_optimizer: whether it is trained without an optimizer, so that every backward pass ends a step.
        entries: modules that have a counter in front of them for it.
        states: what parameters and their gradients were when they were looked at last, by the parameters' ids.
    """

    __slots__ = (
        "_covering",
        "_layer_prefix",
        "_outer",
        "_owner",
        "_prefix",
        "busy",
        "by_gradients",
        "by_mode",
        "called",
        "entries",
        "kind",
        "name",
        "states",
        "thread",
        "title",
        "without_optimizer",
    )

    def __init__(
        self,
        module: torch.nn.Module,
        title: str,
        first: bool,
        owner: torch.nn.Module | None = None,
        path: str = "",
    ) -> None:
        super().__init__(unwrapped(module))
        self.kind = class_name(module)
        self._outer = weakref.ref(module)
        self._owner = None if owner is None else weakref.ref(owner)
        self.entries: list[weakref.ref[torch.nn.Module]] = []
        # Parts of which each holds all parameters, the outermost first, and what names of theirs begin with.
        self._covering: list[tuple[str, str, weakref.ref[torch.nn.Module]]] = []
        before = "" if first else f"{title}_"
        self.title = title
        self.name = f"{before}{path}" if path else title
        self._prefix = f"{title}_{path}." if path else f"{title}_"
        self._layer_prefix = f"{before}{path}." if path else before
        self.thread = threading.get_ident()
        self.called = False
        self.busy = False
        self.by_gradients = False
        self.by_mode = False
        self.without_optimizer = False
        self.states: dict[int, tuple[int, tuple[int, int] | None]] = {}
        self.was_updated()

    @property
    def model(self) -> torch.nn.Module | None:
        """The model or, once that is gone, the outermost part of it that is alive and holds all of its parameters.

        A program may make a wrapper around its net anew in each iteration.
        """
        model = self._model()
        while model is None and self._covering:
            self._prefix, self._layer_prefix, self._model = self._covering.pop(0)
            self.is_whole = False
            model = self._model()
        return model

    @apart
    def was_updated(self, by_gradients: bool = True) -> bool:
        """True if parameters have been changed since this was asked last; some of them are looked at.

        Args:
            by_gradients: whether changed gradients are a sign of it too.
        """
        trained = [
            parameter
            for _, parameter in self.parameters()
            if parameter.requires_grad and parameter.is_leaf and not is_a(parameter, UninitializedParameter)
        ]
        states = {id(p): (p._version, _state(p.grad)) for p in trained[:: len(trained) // _LOOKED_AT + 1]}
        known, self.states = self.states, states
        compared = [(known[key], state) for key, state in states.items() if key in known]
        return any(before != after if by_gradients else before[0] != after[0] for before, after in compared)

    @property
    def owner(self) -> torch.nn.Module | None:
        """The module that gives the model its names, if it is not the model itself."""
        return None if self._owner is None else self._owner()

    @property
    def module(self) -> torch.nn.Module | None:
        """The outermost module around the model that is alive."""
        # A module may have a length and be false.
        outer = self._outer()
        return outer if outer is not None else self.model

    def parts(self) -> Iterable[torch.nn.Module]:
        """All modules of it and of what is around it."""
        module = self.module
        return parts(module) if module is not None else ()

    def parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters with the names they are saved under."""
        model = self.model
        if model is not None:
            for name, parameter in named_parameters(model):
                yield self.name_of(name), parameter

    def name_of(self, path: str) -> str:
        """The name that a parameter is saved under which is called so in the model."""
        return f"{self._prefix}{path}"

    def layers(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules below the model with the names their inputs and outputs are saved under."""
        model = self.model
        if model is not None:
            for name, layer in named_layers(model):
                if name:
                    yield f"{self._layer_prefix}{name}", layer
                elif not self.is_whole:
                    yield self._layer_prefix.removesuffix("."), layer

    def called_as(self, module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str | None]]:
        """All modules whose calls are the model's, from now on, and what each call is called.

        Args:
            module: what is called, around the model or the model itself.
        """
        self._outer = weakref.ref(module)
        for entry in wrapper_chain(module):
            yield entry, self.name
        # What holds a net and its loss is trained; the net alone is evaluated.
        model = self.model
        names = {} if model is None else {id(layer): name for name, layer in named_layers(model)}
        self._covering = []
        while model is not None and (inner := covering_child(model)) is not None:
            for entry in wrapper_chain(inner):
                yield entry, None
            model = unwrapped(inner)
            path = f"{names.get(id(model), '')}."
            self._covering.append((f"{self._prefix}{path}", f"{self._layer_prefix}{path}", weakref.ref(model)))


def _state(gradient: torch.Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)
