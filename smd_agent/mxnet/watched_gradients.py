"""Gradients inside of a backward pass, and the operation that has made the first of them that is not finite.

MXNet computes them without telling anybody. So once a pass has gone wrong, each operation of it is differentiated once
more by itself, from the last one to the first, on copies: the program's own pass is not touched. What draws random
numbers draws others then, which changes gradients, but hardly whether they are finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mxnet import autograd, ndarray
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.framework.value_makers import Array, Operation, kind_of
from smd_agent.mxnet.arrays import arrays_in, plain

Memory = Callable[[NDArray], tuple[int, int] | None]


class Recorded:
    """An operation that has been recorded.

    Args:
        operation: it.
        given, results: of it.
        run: computes it once more, of other arrays; None of a function that has a gradient of its own.
        function: that function.
    """

    def __init__(
        self,
        operation: Operation,
        given: Sequence[NDArray],
        results: Sequence[NDArray],
        run: Callable[[list[NDArray]], Any] | None,
        function: Any = None,
    ) -> None:
        self.operation = operation
        self.given = [*given]
        self.results = [*results]
        self._run = run
        self._function = function
        self._trains = autograd.is_training()

    def differentiated(self, gradients: list[NDArray], wanted: list[bool]) -> list[Array | None]:
        """The gradients of what it was given, as far as they are wanted, by those of its results."""
        if self._run is None:
            with autograd.pause(train_mode=self._trains):
                found = arrays_in(self._function.backward(*gradients))
            return [one.asnumpy() if asked else None for one, asked in zip(found, wanted, strict=True)]
        copies = [plain(one).copy() if asked else one for one, asked in zip(self.given, wanted, strict=True)]
        variables = [one for one, asked in zip(copies, wanted, strict=True) if asked]
        for one in variables:
            one.attach_grad()
        with autograd.record(train_mode=self._trains):
            results = arrays_in(self._run(copies))
        with autograd.pause(train_mode=self._trains):
            found = autograd.grad(results, variables, gradients, retain_graph=False, train_mode=self._trains)
        left = iter(found)
        return [next(left).asnumpy() if asked else None for asked in wanted]


class WatchedGradients:
    """Those of a step.

    Args:
        memory: address and size of an array's memory.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._recorded: list[Recorded] = []

    def forget(self) -> None:
        """Another step begins."""
        self._recorded.clear()

    def note(self, recorded: Recorded) -> None:
        """An operation has run."""
        self._recorded.append(recorded)

    def first_bad(self, heads: Sequence[NDArray]) -> tuple[Recorded, Array] | None:
        """The first operation of a pass from these whose gradient is not finite though that of its results is."""
        places = _Places(self._memory, [one for recorded in self._recorded for one in recorded.results])
        for head in heads:
            places.add(head, np.ones(head.shape, head.dtype))
        for recorded in reversed(self._recorded):
            gradients = [places.gradient(one) for one in recorded.results]
            if not any(places.has(one) for one in recorded.results):
                continue
            wanted = [
                _is_of_numbers(one) and (plain(one).grad is not None or places.knows(one)) for one in recorded.given
            ]
            if not any(wanted):
                continue
            found: list[Array | None] = []
            failure = guard.attempt(lambda: found.extend(recorded.differentiated(gradients, wanted)))  # noqa: B023
            if failure is not None:
                # What is before it is not known any more.
                return None
            for one, gradient in zip(recorded.given, found, strict=True):
                if gradient is not None and kind_of(gradient):
                    return recorded, gradient
                if gradient is not None:
                    places.add(one, gradient)
        return None


class _Places:
    """The gradients of results, by their memory: what is given may be a part of a result.

    Args:
        memory: address and size of an array's memory.
        results: of all operations.
    """

    def __init__(self, memory: Memory, results: Sequence[NDArray]) -> None:
        self._memory = memory
        self._known = [(one, place) for one in results if _is_of_numbers(one) and (place := memory(one)) is not None]
        self._by_id = {id(one): one for one, _ in self._known}
        self._gradients: dict[int, Array] = {}

    def knows(self, array: NDArray) -> bool:
        """True if an array is a result, or a part of one."""
        return self._base(array) is not None

    def has(self, result: NDArray) -> bool:
        """True if a result has a gradient."""
        return id(result) in self._gradients

    def gradient(self, result: NDArray) -> NDArray:
        """That of a result; zeros where it has none."""
        known = self._gradients.get(id(result))
        values = np.zeros(result.shape, result.dtype) if known is None else known.reshape(result.shape)
        return ndarray.array(values, ctx=plain(result).context, dtype=values.dtype)

    def add(self, array: NDArray, gradient: Array) -> None:
        """An operation that was given this array adds to the gradient of what it is of."""
        found = self._base(array)
        if found is None:
            return
        base, offset = found
        if id(base) not in self._gradients:
            self._gradients[id(base)] = np.zeros(base.size, base.dtype)
        self._gradients[id(base)][offset : offset + gradient.size] += gradient.ravel()

    def _base(self, array: NDArray) -> tuple[NDArray, int] | None:
        if id(array) in self._by_id:
            return array, 0
        own = self._memory(array)
        for other, (address, size) in self._known if own is not None else ():
            if address <= own[0] and own[0] + own[1] <= address + size:  # type: ignore[index]
                return other, (own[0] - address) // np.dtype(other.dtype).itemsize  # type: ignore[index]
        return None


def _is_of_numbers(array: NDArray) -> bool:
    own = plain(array)
    return bool(own.stype == "default" and np.dtype(own.dtype).kind == "f")
