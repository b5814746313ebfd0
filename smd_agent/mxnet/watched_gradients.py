"""Gradients inside of a backward pass, and the operation that has made the first of them that is not finite.

MXNet computes them without telling anybody. So what an operation is given is handed on to it by a function that
changes nothing and shares its memory; the gradient of that function is what comes back from this operation alone. No
number is another one, but gradients of gradients cannot be had of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import mxnet
import numpy as np
from mxnet import autograd
from mxnet.base import _LIB as LIBRARY
from mxnet.base import OpHandle, c_str, check_call
from mxnet.ndarray import NDArray
from mxnet.ndarray._internal import _imperative_invoke

from smd_agent import guard
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import Function, replace_everywhere
from smd_agent.framework.value_makers import Array, Operation, kind_of
from smd_agent.mxnet.arrays import plain

_WHY = "gradients are seen where they come from in a training that is done again"
# Arguments of ``autograd.grad`` behind the first two: head_grads, retain_graph, create_graph.
_BEFORE_CREATE_GRAPH = 2


class Differentiated:
    """An operation that has been recorded.

    Attributes:
        operation: it.
        given: what it was given.
        bad: what has come back from it and is not finite; None as long as nothing has.
    """

    def __init__(self, operation: Operation, given: Iterable[NDArray]) -> None:
        self.operation = operation
        self.given = [*given]
        self.bad: Array | None = None


class _HandsOn(autograd.Function):  # type: ignore[misc]
    """A function that gives what it is given, and whose gradient is looked at."""

    def __init__(self, behind: Differentiated) -> None:
        super().__init__()
        self._behind = behind

    def forward(self, array: NDArray) -> NDArray:
        """The same array, as another object."""
        return array.detach()

    def backward(self, gradient: NDArray) -> NDArray:
        """The same gradient."""
        # A thread of the engine's calls this and waits for it: nothing but this array may be waited for.
        guard.attempt(lambda: self._look(gradient))
        return gradient

    def _look(self, gradient: NDArray) -> None:
        array = plain(gradient).asnumpy()
        if kind_of(array):
            self._behind.bad = array


class WatchedGradients:
    """Those of a process, a step at a time."""

    def __init__(self) -> None:
        self._recorded: list[Differentiated] = []
        self._is_off = False
        handle = OpHandle()
        check_call(LIBRARY.NNGetOpHandle(c_str("_copy"), ctypes.byref(handle)))
        self._copy = handle.value
        replace_everywhere(autograd.grad, self._wrap_grad, why=_WHY)

    def forget(self) -> None:
        """Another step begins."""
        self._recorded.clear()

    def handed_on(self, operation: Operation, given: Sequence[NDArray]) -> list[NDArray]:
        """The arrays that an operation is to be given in place of these, so that its gradients are seen."""
        if self._is_off or not autograd.is_recording():
            return [*given]
        recorded = Differentiated(operation, given)
        self._recorded.append(recorded)
        return [self._handed_on(one, recorded) for one in given]

    def first_bad(self) -> Differentiated | None:
        """The first operation of the backward pass from which something has come back that is not finite.

        All that comes back to it is finite: it comes from those that were recorded after it.
        """
        return next((one for one in reversed(self._recorded) if one.bad is not None), None)

    def _handed_on(self, array: NDArray, recorded: Differentiated) -> NDArray:
        own = plain(array)
        gradient = own.grad if _is_of_numbers(own) else None
        if gradient is None:
            return _HandsOn(recorded)(array) if _is_of_numbers(own) else array
        # A function's gradient is never added to another one, and is never sparse.
        if gradient.stype != "default":
            return array
        return _HandsOn(recorded)(
            _imperative_invoke(self._copy, (array,), (), (), None, is_a(array, mxnet.np.ndarray), False)
        )

    def _wrap_grad(self, original: Function) -> Function:
        def grad(heads: Any, variables: Any, *args: Any, **kwargs: Any) -> Any:
            # With create_graph: a step that has begun fails, those after it do not.
            self._is_off = self._is_off or len(args) > _BEFORE_CREATE_GRAPH or "create_graph" in kwargs
            return original(heads, variables, *args, **kwargs)

        return grad


def is_hand_on(function: object) -> bool:
    """True if a function is one of those by which gradients are seen."""
    return is_a(function, _HandsOn)


def _is_of_numbers(array: NDArray) -> bool:
    return bool(array.stype == "default" and np.dtype(array.dtype).kind == "f")
