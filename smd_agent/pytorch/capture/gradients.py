"""The gradients of a saved step: which of them belong to it, and when they are read.

After the outermost ``backward`` those that it has changed are read: reduced over ranks, not clipped, divided by the
scale of the loss. Where several passes add to one gradient, the sum is saved: each pass replaces what the one before
has saved. What a backward pass has not touched may be left over from an
earlier step; it is read when an optimizer is about to use it (or a scaler to unscale it). After the optimizer has used
a parameter, gradients from later backward passes count for the next step. In a step with neither a backward pass nor an
optimizer, what ``autograd.grad`` returned for the model's parameters is saved.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch

from smd_agent.core.failure_domains import GRADIENTS
from smd_agent.core.ports import Deferred, StepWriter
from smd_agent.framework import step_events as events
from smd_agent.framework.plain_access import attribute, elements_of, is_a
from smd_agent.framework.step_events import Probe, on
from smd_agent.pytorch.arrays import local_of, tensors_in
from smd_agent.pytorch.capture.loss_scaling import Scales, unscaled
from smd_agent.pytorch.plain_access import optimized


class Gradients(Probe, domain=GRADIENTS, doing="looking at gradients"):
    """The gradients of one step that is saved.

    Args:
        writer: takes the values.
        scales: of the losses.
        wanted: whether the step may save any.

    Attributes:
        changed: ids of the parameters whose gradients the last backward pass has changed.
    """

    def __init__(self, writer: StepWriter, scales: Scales, wanted: bool) -> None:
        self._writer = writer
        self._scales = scales
        self.wanted = wanted
        self._names: dict[int, list[str]] = {}
        # A model that the program lets go of must not live on for the step that is open.
        self._parameters: dict[int, weakref.ref[torch.Tensor]] = {}
        self._scale_saved: dict[int, float] = {}
        self._used: set[int] = set()
        self._before: dict[int, tuple[torch.Tensor, int]] = {}
        # Of the backward pass that is under way.
        self._scale: float | None = None
        self.changed: list[int] = []
        self._computed: dict[int, torch.Tensor] = {}
        self._trained = False

    @on(events.NewParameters)
    def add_parameters(self, new: events.NewParameters) -> None:
        """Save the gradients of these too, under these names; a parameter may have several."""
        for name, parameter in new.pairs:
            if parameter.is_leaf:
                self._parameters[id(parameter)] = weakref.ref(parameter)
                self._names.setdefault(id(parameter), []).append(name)

    def keep(self, keys: set[int]) -> None:
        """Save the gradients of these parameters only, given by their ids."""
        # Another dict, as a thread may be walking the old one.
        self._parameters = {key: parameter for key, parameter in self._parameters.items() if key in keys}

    @on(events.StepEnd, doing="saving gradients")
    def close(self, _: events.StepEnd) -> None:
        """Save what is only known once the step is over."""
        if not self._trained and self._computed:
            self._write(self._computed)
        self._computed.clear()
        self._parameters.clear()

    # Backward passes.

    @on(events.BeforeBackward)
    def before_backward(self, backward: events.BeforeBackward) -> None:
        """Remember what the gradients were, and the scale that they will have."""
        self._scale, self.changed = None, []
        # They are held, because what replaces one that is gone may well stand in its place in memory.
        self._before = {key: (gradient, _version(gradient)) for key, gradient in self._gradients()}
        self._scale = self._scales.scale_behind(tensors_in(backward.tensors))

    @on(events.AfterBackward, doing="saving gradients")
    def after_backward(self, _: events.AfterBackward) -> None:
        """Save the gradients that the backward pass has changed."""
        before, self._before = self._before, {}
        if self._scale is None:
            # Nobody knows what they were.
            return
        self._trained = True
        complete: list[int] = []
        again: list[int] = []
        for key, gradient in self._gradients():
            if key in self._used or _is_unchanged(gradient, before.get(key)):
                continue
            (again if key in self._scale_saved else complete).append(key)
        self._save(complete, self._scale)
        self._save(again, self._scale, replace=True)
        self.changed = [*complete, *again]

    # Optimizers and scalers.

    @on(events.BeforeOptimizer, doing="saving gradients before an optimizer's step")
    def before_optimizer(self, use: events.BeforeOptimizer) -> None:
        """Save the gradients that the optimizer is about to use and no backward pass has shown."""
        keys = self._keys_of(use.optimizer)
        # Optimizers that unscale in their own kernel are told the scale.
        scale = attribute(use.optimizer, "grad_scale")
        self._save([key for key in keys if key not in self._scale_saved], 1.0 if scale is None else float(scale))
        self._used.update(keys)
        self._trained = self._trained or bool(keys)

    @on(events.BeforeUnscaling, doing="saving gradients before they are unscaled")
    def before_unscaling(self, unscaling: events.BeforeUnscaling) -> None:
        """Save the gradients of an optimizer that are about to be divided by this scale."""
        scale = unscaling.scale
        # This scale is the one that counts: of a loss that was scaled inside compiled code nothing was seen.
        keys = [
            key
            for key in self._keys_of(unscaling.optimizer)
            if self._scale_saved.get(key) != scale and key not in self._used
        ]
        self._save([key for key in keys if key not in self._scale_saved], scale)
        self._save([key for key in keys if key in self._scale_saved], scale, replace=True)
        self._trained = True

    def _keys_of(self, optimizer: Any) -> list[int]:
        return [key for key in map(id, optimized(optimizer)) if key in self._parameters]

    @on(events.GradientsReturned, doing="looking at autograd.grad")
    def after_grad(self, call: events.GradientsReturned) -> None:
        """Keep gradients of the model's parameters, which the program may go on computing in."""
        if self._trained:
            return
        scale = self._scales.scale_behind(tensors_in(call.outputs))
        given = elements_of(call.inputs) if is_a(call.inputs, (list, tuple)) else [call.inputs]
        for parameter, gradient in zip(given, call.gradients, strict=False):
            known = self._names.get(id(parameter))
            if known is None or gradient is None or gradient.shape != parameter.shape:
                continue
            if any(self._writer.wants(f"gradient/{name}") for name in known):
                self._computed[id(parameter)] = unscaled(gradient.detach(), scale).clone()

    # Writing.

    def _save(self, keys: list[int], scale: float, replace: bool = False) -> None:
        if keys:
            found = {key: Gradient(gradient, scale) for key in keys if (gradient := self._gradient(key)) is not None}
            self._scale_saved.update(dict.fromkeys(found, scale))
            self._write(found, replace)

    def _gradients(self) -> Iterator[tuple[int, torch.Tensor]]:
        for key in self._parameters:
            gradient = self._gradient(key)
            if gradient is not None:
                yield key, gradient

    def _gradient(self, key: int) -> torch.Tensor | None:
        reference = self._parameters.get(key)
        parameter = None if reference is None else reference()
        return None if parameter is None else parameter.grad

    def _write(self, values: dict[int, Any], replace: bool = False) -> None:
        pairs = [(f"gradient/{name}", value) for key, value in values.items() for name in self._names[key]]
        write = self._writer.replace_tensors if replace else self._writer.save_tensors
        write([name for name, _ in pairs], [value for _, value in pairs])


class Gradient(Deferred):
    """A gradient that is unscaled only if it is saved."""

    __slots__ = ("_scale", "value")

    def __init__(self, value: torch.Tensor, scale: float) -> None:
        self.value = value
        self._scale = scale

    def read(self) -> torch.Tensor:
        """The gradient as the optimizer would see it without clipping."""
        return unscaled(self.value.detach(), self._scale)


def _is_unchanged(gradient: torch.Tensor, before: tuple[torch.Tensor, int] | None) -> bool:
    return before is not None and gradient is before[0] and _version(gradient) == before[1]


def _version(gradient: torch.Tensor) -> int:
    # A distributed tensor is added to in its local part.
    version: int = local_of(gradient)._version
    return version
