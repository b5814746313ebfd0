"""The values from which backward passes begin: the losses of a training, seen in every step.

``Tensor.backward`` calls what stands in ``torch.autograd.backward``, so that one function for good sees all passes. A
loss that a ``GradScaler`` has multiplied is taken as it was before.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

import torch

from smd_agent.formats.series import ABSENT
from smd_agent.framework.error_boundary import Fallback, own_failure
from smd_agent.framework.plain_access import is_a, own_dict
from smd_agent.framework.replaced_functions import is_replaced, replace
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.capture.loss_scaling import Node, identity, nodes_behind, with_subclasses
from smd_agent.pytorch.own_operations import apart, without_gradients
from smd_agent.pytorch.series.late_rows import DEVICES, Number
from smd_agent.pytorch.torch_compile import compiler, is_compiling, is_dynamo_compiling, leave_uncompiled
from smd_agent.pytorch.tracing import TRANSFORM, captures, graph_task, key_is_included

_WHY = "the loss of every step is taken"


class PassListener(Protocol):
    """Is told of backward passes."""

    def pass_begins(self, roots: Any) -> None:
        """A pass begins from these tensors."""

    def loss_scaled(self, scaler: Any, losses: Any, scaled: Any) -> None:
        """A scaler has multiplied losses."""


class _Passes:
    """The watch of the process on backward passes.

    Attributes:
        listener: is told of those that are in no other one; None if nobody wants that.
    """

    def __init__(self) -> None:
        self.listener: PassListener | None = None
        # The thread whose pass has been told of: modes and subclasses of the program's may call the function again.
        self._thread = 0

    def watch(self) -> None:
        """Have passes told of from now on."""
        if not is_replaced(torch.autograd, "backward"):
            replace(torch.autograd, "backward", self._wrap, why=_WHY, enters=True)

    def tell(self, listener: PassListener) -> None:
        """Tell this one, and no other, from now on."""
        self.watch()
        self.listener = listener
        for scaler in with_subclasses(torch.amp.GradScaler):
            if "scale" in vars(scaler) and not is_replaced(scaler, "scale"):
                replace(scaler, "scale", self._wrap_scale, why=_WHY)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **kwargs: Any) -> Any:
            # First, so that a compiler that traces this folds it to True and sees nothing else.
            if is_dynamo_compiling() or compiler._is_compiling_flag:
                return original(*args, **kwargs)
            try:
                listener = self.listener
                if listener is None or graph_task() != -1 or self._thread == get_ident():
                    return original(*args, **kwargs)
                self._thread = get_ident()
                try:
                    listener.pass_begins(args[0] if args else kwargs.get("tensors"))
                    result = original(*args, **kwargs)
                finally:
                    self._thread = 0
                return result
            except BaseException as error:
                instead = own_failure(error)
                if instead is None:
                    raise
            return original(*args, **kwargs) if instead.is_call else instead.of(original)

        leave_uncompiled(unseen(backward))
        leave_uncompiled(Fallback.of)
        return backward

    def _wrap_scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if self.listener is not None and not is_compiling():
                self.listener.loss_scaled(scaler, outputs, result)
            return result

        return scale


passes = _Passes()


class ScaledLosses:
    """The losses of a step that a scaler has multiplied."""

    def __init__(self) -> None:
        self._known: dict[Node, tuple[Number, Number]] = {}

    def note(self, scaler: Any, losses: Any, scaled: Any) -> None:
        """A scaler has made these of those."""
        scale = scale_of(scaler)
        for loss, after in zip(_plain(losses), _plain(scaled), strict=False):
            value = number_of(loss)
            if value is not ABSENT and scale is not ABSENT and after.grad_fn is not None:
                self._known[identity(after.grad_fn)] = value, scale

    def clear(self) -> None:
        """The step is over."""
        if self._known:
            self._known.clear()

    def numbers(self, roots: Any) -> list[Number]:
        """The values of those roots of a pass that are plain tensors of one element, as they were before scaling."""
        if captures.under_way or key_is_included(TRANSFORM):
            return []
        found = [roots] if type(roots) in PLAIN_CLASSES else _plain(roots)
        numbers = [*map(self._before if self._known else number_of, found)]
        return [number for number in numbers if number is not ABSENT] if ABSENT in numbers else numbers

    def _before(self, root: torch.Tensor) -> Number:
        if root.grad_fn is not None and (known := self._known.get(identity(root.grad_fn))) is not None:
            return known[0]
        scales = [known[1] for node in nodes_behind([root]) if (known := self._known.get(node)) is not None]
        value = number_of(root)
        return divided(value, scales[0]) if scales and value is not ABSENT else value


def scale_of(scaler: Any) -> Number:
    """By what a scaler multiplies losses now; ``ABSENT`` of one that is not enabled, or has multiplied none."""
    own = own_dict(scaler)
    scale = own.get("_scale")
    return number_of(scale) if own.get("_enabled") is not False and is_a(scale, torch.Tensor) else ABSENT


def number_of(value: Any) -> Number:
    """A number of the program's, or that of a plain tensor of one element; ``ABSENT`` of anything else."""
    if type(value) is float:
        return value
    if type(value) in PLAIN_CLASSES:
        return _number_in(value)
    return float(value) if is_a(value, (int, float)) else ABSENT


@apart
def _number_in(tensor: torch.Tensor) -> Number:
    if tensor.numel() != 1 or not tensor.is_floating_point() or tensor.layout is not torch.strided:
        return ABSENT
    return float(tensor.item()) if tensor.is_cpu else _on_device(tensor)


def divided(number: Number, by: Number) -> Number:
    """One number divided by another one."""
    if type(number) is float and type(by) is float:
        return number / by if by else math.nan
    return _computed(operator.truediv, number, by)


def added(number: Number, to: Number) -> Number:
    """The sum of two numbers."""
    if type(number) is float and type(to) is float:
        return to + number
    return _computed(operator.add, to, number)


@apart
@without_gradients
def _computed(function: Callable[[Number, Number], Number], one: Number, other: Number) -> Number:
    if is_a(one, torch.Tensor) and is_a(other, torch.Tensor):
        other = other.to(one.device, non_blocking=True)
    return function(one, other)


def _plain(values: Any) -> list[torch.Tensor]:
    if type(values) in PLAIN_CLASSES:
        return [values]
    return [one for one in values if type(one) in PLAIN_CLASSES] if type(values) in (list, tuple) else []


@without_gradients
def _on_device(tensor: torch.Tensor) -> Number:
    if tensor.device.type not in DEVICES:
        return ABSENT
    # A copy: what the program goes on computing in may have changed when the step ends.
    return tensor.detach().reshape(()).to(torch.float64, copy=True)
