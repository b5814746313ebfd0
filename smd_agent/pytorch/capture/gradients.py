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
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from smd_agent.core.domains import GRADIENTS
from smd_agent.core.ports import Deferred, StepWriter
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.plain_access import attribute, elements_of, is_a
from smd_agent.pytorch.arrays import local_of, tensors_in
from smd_agent.pytorch.capture.loss_scaling import Scales, unscaled
from smd_agent.pytorch.fences import fence
from smd_agent.pytorch.structure import optimized
from smd_agent.pytorch.tracing import graph_task, is_compiling


class Gradients:
    """The gradients of one step that is saved.

    Args:
        writer: takes the values.
        training_goes_on: called before an optimizer or a scaler uses gradients.
    """

    def __init__(self, writer: StepWriter, training_goes_on: Callable[[], object]) -> None:
        self._writer = writer
        self._training_goes_on = training_goes_on
        self.scales = Scales(self._before_unscaling, writer)
        self._names: dict[int, list[str]] = {}
        # A model that the program lets go of must not live on for the step that is open.
        self._parameters: dict[int, weakref.ref[torch.Tensor]] = {}
        self._scale_saved: dict[int, float] = {}
        self._used: set[int] = set()
        self._before: dict[int, tuple[torch.Tensor, int]] = {}
        self._computed: dict[int, torch.Tensor] = {}
        self._trained = False

    @GRADIENTS.fence("looking at gradients")
    def install(self, installed: Installed) -> None:
        """Watch what computes and uses gradients until the step closes."""
        self.scales.install(installed)
        installed.patch(torch.autograd, "grad", self._wrap_grad, why="gradients that it returns are saved")

    @GRADIENTS.fence("looking at gradients")
    def add_parameters(self, pairs: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Save the gradients of these too, under these names; a parameter may have several."""
        for name, parameter in pairs:
            if parameter.is_leaf:
                self._parameters[id(parameter)] = weakref.ref(parameter)
                self._names.setdefault(id(parameter), []).append(name)

    def keep(self, keys: set[int]) -> None:
        """Save the gradients of these parameters only, given by their ids."""
        # Another dict, as a thread may be walking the old one.
        self._parameters = {key: parameter for key, parameter in self._parameters.items() if key in keys}

    @fence("saving gradients", GRADIENTS)
    def close(self) -> None:
        """Save what is only known once the step is over."""
        self.scales.close()
        if not self._trained and self._computed:
            self._write(self._computed)
        self._computed.clear()
        self._parameters.clear()

    # Backward passes.

    @GRADIENTS.fence("looking at gradients")
    def before_backward(self) -> None:
        """Remember what the gradients were."""
        # They are held, because what replaces one that is gone may well stand in its place in memory.
        self._before = {key: (gradient, _version(gradient)) for key, gradient in self._gradients()}

    @GRADIENTS.fence("reading the scale of a loss")
    def scale_behind(self, tensors: Any) -> float:
        """The scale that the gradients of a backward pass from these tensors have."""
        return self.scales.scale_behind(tensors_in(tensors))

    @fence("saving gradients", GRADIENTS)
    def after_backward(self, scale: float) -> list[int] | None:
        """Save the gradients that the backward pass has changed; ``scale`` is that of its loss.

        Returns the ids of their parameters, None if that failed.
        """
        self._trained = True
        before, self._before = self._before, {}
        complete: list[int] = []
        again: list[int] = []
        changed: list[int] = []
        for key, gradient in self._gradients():
            if key in self._used or _is_unchanged(gradient, before.get(key)):
                continue
            changed.append(key)
            (again if key in self._scale_saved else complete).append(key)
        self._save(complete, scale)
        self._save(again, scale, replace=True)
        return changed

    # Optimizers and scalers.

    @GRADIENTS.fence("saving gradients before an optimizer's step")
    def before_optimizer(self, optimizer: Any) -> None:
        """Save the gradients that the optimizer is about to use and no backward pass has shown."""
        keys = self._keys_of(optimizer)
        # Optimizers that unscale in their own kernel are told the scale.
        scale = attribute(optimizer, "grad_scale")
        self._save([key for key in keys if key not in self._scale_saved], 1.0 if scale is None else float(scale))
        self._used.update(keys)
        self._trained = self._trained or bool(keys)

    def _before_unscaling(self, optimizer: Any, scale: float) -> None:
        self._training_goes_on()
        # This scale is the one that counts: of a loss that was scaled inside compiled code nothing was seen.
        keys = [
            key for key in self._keys_of(optimizer) if self._scale_saved.get(key) != scale and key not in self._used
        ]
        self._save([key for key in keys if key not in self._scale_saved], scale)
        self._save([key for key in keys if key in self._scale_saved], scale, replace=True)
        self._trained = True

    def _keys_of(self, optimizer: Any) -> list[int]:
        return [key for key in map(id, optimized(optimizer)) if key in self._parameters]

    # autograd.grad.

    def _wrap_grad(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or graph_task() != -1:
                return original(outputs, inputs, *args, **kwargs)
            if not is_a(inputs, (torch.Tensor, list, tuple, GradientEdge)):
                # An iterator can be walked only once.
                inputs = tuple(inputs)
            scale = self._scale_behind(outputs)
            result = original(outputs, inputs, *args, **kwargs)
            self._keep(inputs, result, scale)
            return result

        return grad

    @fence("looking at autograd.grad", GRADIENTS)
    def _scale_behind(self, outputs: Any) -> float:
        return self.scales.scale_behind(tensors_in(outputs))

    @fence("looking at autograd.grad", GRADIENTS)
    def _keep(self, inputs: Any, computed: Any, scale: float | None) -> None:
        if self._trained:
            return
        given = elements_of(inputs) if is_a(inputs, (list, tuple)) else [inputs]
        for parameter, gradient in zip(given, computed, strict=False):
            known = self._names.get(id(parameter))
            if known is None or gradient is None or gradient.shape != parameter.shape:
                continue
            if any(self._writer.wants(f"gradient/{name}") for name in known):
                # The program may go on computing in it.
                self._computed[id(parameter)] = unscaled(gradient.detach(), scale or 1.0).clone()

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
