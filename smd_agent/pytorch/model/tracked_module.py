"""The model being trained, held weakly: what it is called, its parameters and its layers, and what is known of it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.plain_access import is_a
from smd_agent.framework.tracked_model import TrackedModel
from smd_agent.pytorch.model.inner_models import inner_models
from smd_agent.pytorch.model.wrappers import (
    class_name,
    named_layers,
    named_parameters,
    unwrapped,
    wrapper_chain,
)
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.plain_access import parts

KeptCall = tuple[tuple[Any, ...], dict[str, Any], torch.Tensor, int, tuple[tuple[str, torch.dtype], ...]]
"""A call of a model: its arguments, the state of the generator of random numbers, the number of the graph's next node,
and for which devices operations were cast to which types."""

_LOOKED_AT = 16
"""Parameters of a model that are looked at for updates."""


class Names(NamedTuple):
    """The names that a model, its parameters and its layers are saved under.

    kind: the name of the model's class.
    title: the class name, of the owner if there is one, with a number behind it if another model has it already.
    model: what its inputs and outputs are called.
    parameter_prefix, layer_prefix: what the names of these begin with.
    """

    kind: str
    title: str
    model: str
    parameter_prefix: str
    layer_prefix: str

    @classmethod
    def of(cls, kind: str, title: str, first: bool, path: str) -> Names:
        """The names of a model; see ``TrackedModule``."""
        before = "" if first else f"{title}_"
        if not path:
            return cls(kind, title, title, f"{title}_", before)
        return cls(kind, title, f"{before}{path}", f"{title}_{path}.", f"{before}{path}.")

    def of_part(self, path: str) -> Names:
        """The names where only this part of the model is left."""
        return self._replace(
            parameter_prefix=f"{self.parameter_prefix}{path}.", layer_prefix=f"{self.layer_prefix}{path}."
        )


@dataclass(slots=True)
class CapturedCalls:
    """The calls of a model.

    Attributes:
        thread: the one that found the model, or has called it last in a step that is saved.
        any: whether it has been called in a step that is saved, from no other model.
        busy: whether a call of it is being captured.
        kept: the last one of the training step that is under way; None where there was none.
    """

    thread: int = field(default_factory=threading.get_ident)
    any: bool = False
    busy: bool = False
    kept: KeptCall | None = None


class TrackedModule(TrackedModel[torch.nn.Module]):
    """A model whose forward opens steps.

    Args:
        module: the outermost module that is called.
        title: see ``Names``.
        first: whether names of layers need no title before them.
        owner: the module that the program calls this model as a part of, which gives it its names.
        path: what the model is called there.

    Attributes:
        names: what is saved of it goes by them.
        calls: those in steps that are saved.
        by_gradients: whether it gets gradients in evaluation mode; then gradients being enabled tells TRAIN from EVAL.
        by_mode: whether its training calls it without gradients, too; then its mode alone tells TRAIN from EVAL.
        without_optimizer: whether it is trained without an optimizer, so that every backward pass ends a step.
        entries: modules that have a counter in front of them for it.
        states: what parameters and their gradients were when they were looked at last, by the parameters' ids.
    """

    __slots__ = (
        "_covering",
        "_outer",
        "_owner",
        "by_gradients",
        "by_mode",
        "calls",
        "entries",
        "names",
        "states",
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
        self._outer = weakref.ref(module)
        self._owner = None if owner is None else weakref.ref(owner)
        self.entries: list[weakref.ref[torch.nn.Module]] = []
        # Parts of which each holds all parameters, the outermost first, and what names of theirs begin with.
        self._covering: list[tuple[Names, weakref.ref[torch.nn.Module]]] = []
        self.names = Names.of(class_name(module), title, first, path)
        self.calls = CapturedCalls()
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
            self.names, self._model = self._covering.pop(0)
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
        return f"{self.names.parameter_prefix}{path}"

    def layers(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules below the model with the names their inputs and outputs are saved under."""
        model = self.model
        if model is not None:
            for name, layer in named_layers(model):
                if name:
                    yield f"{self.names.layer_prefix}{name}", layer
                elif not self.is_whole:
                    yield self.names.layer_prefix.removesuffix("."), layer

    def called_as(self, module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, str | None]]:
        """All modules whose calls are the model's, from now on, and what each call is called.

        Args:
            module: what is called, around the model or the model itself.
        """
        self._outer = weakref.ref(module)
        for entry in wrapper_chain(module):
            yield entry, self.names.model
        self._covering = []
        model = self.model
        for path, inner in inner_models(model) if model is not None else ():
            for entry in wrapper_chain(inner):
                yield entry, None
            self._covering.append((self.names.of_part(path), weakref.ref(unwrapped(inner))))


def _state(gradient: torch.Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)
