"""The first call of a model since the last backward pass of a training step: what it was given, and random numbers.

Tensors are held as they are, without copies, until their step has ended; what the program changes in them meanwhile is
told by their versions.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import torch

from smd_agent import guard
from smd_agent.core.failure_domains import BUNDLES
from smd_agent.pytorch.arrays import PLAIN_CLASSES, tensors_in
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.torch_compile import leave_uncompiled
from smd_agent.pytorch.tracing import captures, probe

_state = torch.default_generator.get_state
_casts_any = probe(torch, "_C._is_any_autocast_enabled", False)
_is_initialized = torch.cuda.is_initialized
_CASTING = ("cpu", "cuda")
_detached = torch.Tensor.detach
_graph = attrgetter("grad_fn")
# Sets, as a generator would be a further function in each step.
_TENSOR = {torch.Tensor}
_NONE: set[object] = {None}


class GivenCall(NamedTuple):
    """A call.

    Attributes:
        tracked: the model.
        args, kwargs: what it was given.
        versions: each tensor of these, and how often it had been changed.
        random: the state of the generator of random numbers of each device that has one.
        casts: for which devices operations were cast to which types.
    """

    tracked: TrackedModule
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    versions: list[tuple[torch.Tensor, int]]
    random: list[tuple[str, torch.Tensor]]
    casts: tuple[tuple[str, torch.dtype], ...]

    def changed(self) -> set[int]:
        """Ids of the tensors that have been changed since."""
        return {id(tensor) for tensor, version in self.versions if tensor._version != version}


class FirstCall:
    """The one of a hook.

    Attributes:
        call: the call; None where there was none.
        passed: whether a backward pass has begun since.
        wanted: whether calls are looked at now.
    """

    def __init__(self) -> None:
        self.call: GivenCall | None = None
        self.passed = False
        self.wanted = False
        self._on = False

    def begin(self) -> None:
        """Look at calls from now on."""
        self._on = self.wanted = True

    def rest(self, now: bool) -> None:
        """Look at no calls for a while, or again."""
        self.wanted = self._on and not now

    def end(self) -> None:
        """Look at no more calls."""
        self._on = self.wanted = False
        self.forget()

    def forget(self) -> None:
        """The step has ended."""
        self.call = None
        self.passed = False

    def take(self, tracked: TrackedModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is about to be called to be trained."""
        if self.call is None or self.passed:
            self.call = None
            self.passed = False
            self._note(tracked, args, kwargs)

    def _note_unfenced(self, tracked: TrackedModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if captures.under_way:
            return
        plain = not kwargs and {*map(type, args)} <= _TENSOR
        tensors = args if plain else [one for one in tensors_in((args, kwargs)) if type(one) in PLAIN_CLASSES]
        if not {*map(_graph, tensors)} <= _NONE:
            # What it was computed by would live as long as the step.
            args, kwargs = _without_graph(args), dict(zip(kwargs, _without_graph(kwargs.values()), strict=True))
            tensors = [one for one in tensors_in((args, kwargs)) if type(one) in PLAIN_CLASSES]
        versions = [(one, one._version) for one in tensors if not one.is_inference()]
        random = [("cpu", _state())]
        if _is_initialized():  # type: ignore[no-untyped-call]
            random += [(f"cuda:{place}", one.get_state()) for place, one in enumerate(torch.cuda.default_generators)]
        self.call = GivenCall(tracked, args, kwargs, versions, random, _casts() if _casts_any() else ())

    # Without the clocks of ``BUNDLES.fence``, which take as long.
    _note = guard.fenced(apart(_note_unfenced), BUNDLES, "keeping what a model is given", None, False)


def _without_graph(values: Any) -> tuple[Any, ...]:
    return tuple(_detached(one) if type(one) in PLAIN_CLASSES and one.grad_fn is not None else one for one in values)


def _casts() -> tuple[tuple[str, torch.dtype], ...]:
    return tuple((one, torch.get_autocast_dtype(one)) for one in _CASTING if torch.is_autocast_enabled(one))


leave_uncompiled(FirstCall.take)
