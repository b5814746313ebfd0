"""Operations of a step that are seen one by one, each of them waited for; for a training that is done again.

All functions of ``mx.nd`` and ``mx.np`` come by one of MXNet's own, which is replaced meanwhile. What a hybridized
block computes does not: such blocks run as they are written. What has no code of Python's, as a ``SymbolBlock``, is one
operation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from threading import get_ident
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from mxnet import autograd
from mxnet.base import _LIB as LIBRARY
from mxnet.base import check_call, py_str
from mxnet.gluon import Block
from mxnet.ndarray import CachedOp, NDArray, register

from smd_agent.core.failure_domains import CULPRITS
from smd_agent.framework.made_values import Place
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import Function, Patch, Until
from smd_agent.framework.value_makers import Makers, Operation, Value, kind_of
from smd_agent.interpreter.callers import callers, first_argument
from smd_agent.interpreter.frame_locals import locals_of
from smd_agent.interpreter.hidden_frames import is_unseen
from smd_agent.mxnet.arrays import arrays_in, plain, raise_pending_error, to_array
from smd_agent.mxnet.plain_access import name_of
from smd_agent.mxnet.watched_gradients import Recorded, WatchedGradients

_WHY = "operations are seen one by one in a training that is done again"
_AGENT = __file__.rpartition("mxnet")[0]
_MXNET = "mxnet."
_FORWARDS = ("forward", "hybrid_forward")
# Of names that MXNet has for operations of its own, and for those of mx.np.
_PREFIXES = ("_npi_", "_npx_", "_np_", "_")
# The setting that an operation has for a number in the place of an array.
_SCALAR = "scalar"
# Kinds of dtypes that have no values which are not finite.
_WHOLE = "iub"
_GRAPH = "graph"


class _Looked(NamedTuple):
    """An operation that is about to run, and what it is given, as long as that is as it was."""

    operation: Operation
    given: list[Value]


class WatchedOperations:
    """Those of a process.

    Args:
        makers: is told of them.

    Attributes:
        hidden: the maker of the first value of the step that is not finite, in words; empty if all are.
    """

    def __init__(self, makers: Makers) -> None:
        self.hidden = ""
        self._makers = makers
        self._gradients = WatchedGradients(_memory)
        self._thread = get_ident()
        self._reads = False
        self._patches: list[Patch] = []
        self._names: dict[int, str] = {}
        # Those that are not finite, with address and size; as long as they are held, nobody else gets their memory.
        self._bad: dict[int, tuple[NDArray, int, int]] = {}

    def begin(self) -> None:
        """See operations from now on."""
        if not self._patches:
            self._patches = [
                Patch(register, "_imperative_invoke", self._wrap_invoke, why=_WHY, until=Until.PROCESS_ENDS),
                Patch(CachedOp, "__call__", self._wrap_graph, why=_WHY, until=Until.PROCESS_ENDS),
                Patch(autograd.Function, "__call__", self._wrap_function, why=_WHY, until=Until.PROCESS_ENDS),
            ]

    def forget(self) -> None:
        """Another step begins."""
        self._bad.clear()
        self._gradients.forget()
        self.hidden = ""

    def end(self) -> None:
        """See no more of them."""
        while self._patches:
            self._patches.pop().remove()

    def value_of(self, array: NDArray) -> Value | None:
        """An array with its values as they are now; None of one that can have none that are not finite."""
        array = plain(array)
        if np.dtype(array.dtype).kind in _WHOLE:
            return None
        self._reads = True
        try:
            # Where it is sparse, an operation makes it dense.
            values = to_array(array)[0]
        finally:
            self._reads = False
        return Value(array, np.array(values)) if values.dtype.kind == "f" else None

    def comes(self, array: NDArray, words: str, of_weights: bool = False) -> None:
        """Tell where an array comes from, if that is not known, and it has values that are not finite."""
        value = self.value_of(array)
        # A mask of -inf has made nothing.
        if value is not None and kind_of(value.array) not in ("", "-inf") and not self._is_known(array):
            self._makers.comes(value._replace(tensor=array), words, of_weights)
            self._hold(array)

    def look_at_gradients(self, heads: Any) -> object | None:
        """Tell the makers which operation's gradient is the first that is not finite; returns what stands for it."""
        self._reads = True
        try:
            first = self._gradients.first_bad(arrays_in(heads))
        finally:
            self._reads = False
        if first is None:
            return None
        found, bad = first
        given = [value._replace(tensor=one) for one in found.given if (value := self.value_of(one)) is not None]
        result = Value(object(), bad)
        name = f"the gradient of {found.operation.name}"
        self._makers.saw(found.operation._replace(name=name), given, [result])
        return result.tensor

    def _is_known(self, array: NDArray) -> bool:
        """True if it is known where an array comes from; it may be a part of one of which that is known."""
        if self._makers.knows(array):
            return True
        own = _memory(array)
        for other, address, size in [*self._bad.values()]:
            if own is not None and address <= own[0] and own[0] + own[1] <= address + size:
                self._makers.goes(other, array)
        return self._makers.knows(array)

    def _hold(self, array: NDArray) -> None:
        own = _memory(array)
        if own is not None:
            self._bad[id(array)] = array, *own

    # How it is done.

    def _wrap_invoke(self, original: Function) -> Function:
        def invoke(handle: Any, given: Any, keys: Any, settings: Any, *args: Any) -> Any:
            looked = self._before(self._name(handle), given, dict(zip(keys, settings, strict=False)).get(_SCALAR))
            raise_pending_error()
            result = original(handle, given, keys, settings, *args)
            if looked is not None:
                self._after(looked, given, result, lambda arrays: original(handle, arrays, keys, settings, *args))
                raise_pending_error()
            return result

        return invoke

    def _wrap_graph(self, original: Function) -> Function:
        def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
            looked = self._before(_GRAPH, args)
            raise_pending_error()
            result = original(operation, *args, **kwargs)
            if looked is not None:
                self._after(looked, args, result, lambda arrays: original(operation, *arrays, **kwargs))
                raise_pending_error()
            return result

        return call

    def _wrap_function(self, original: Function) -> Function:
        def call(function: Any, *given: Any) -> Any:
            looked = self._before(type(function).__name__, given)
            raise_pending_error()
            result = original(function, *given)
            if looked is not None:
                self._after(looked, given, result, None, function)
                raise_pending_error()
            return result

        return call

    @CULPRITS.fence("looking at what an operation is given")
    def _before(self, name: str, given: Sequence[NDArray], number: Any = None) -> _Looked | None:
        """Look at an operation before it may write to what it is given; None of one that is not the step's.

        What the agent computes itself is not, nor is what other threads do, as those that load data.
        """
        if self._reads or get_ident() != self._thread:
            return None
        found = _place()
        if found is None:
            return None
        place, frame = found
        seen: list[Value] = []
        for array in given:
            value = self.value_of(array)
            if value is None:
                continue
            seen.append(value._replace(tensor=array))
            if kind_of(value.array) and not self._is_known(array):
                self._name_given(array, place, frame)
        if number is not None:
            seen.append(Value(object(), np.array(float(number))))
        return _Looked(Operation(name, lambda: place), seen)

    def _name_given(self, array: NDArray, place: Place, frame: FrameType | None) -> None:
        """Name what no operation has made by the variable that has it, as labels are; else its place is told."""
        name = "" if frame is None else _variable(frame, array)
        if name:
            self.comes(array, f"{name} ({place.file.rpartition('/')[2]}:{place.line}) has {{}}")

    @CULPRITS.fence("looking at what an operation has computed")
    def _after(
        self,
        looked: _Looked,
        arrays: Sequence[NDArray],
        result: Any,
        run: Callable[[list[NDArray]], Any] | None,
        function: Any = None,
    ) -> None:
        operation, given = looked
        if autograd.is_recording():
            self._gradients.note(Recorded(operation, arrays, arrays_in(result), run, function))
        if function is not None:
            # What it computes is seen by itself.
            return
        results = [value._replace(tensor=one) for one in arrays_in(result) if (value := self.value_of(one)) is not None]
        bad = [one for one in results if kind_of(one.array)]
        if not bad:
            return
        for one in bad:
            self._hold(one.tensor)
        self._makers.saw(operation, given, results)
        self.hidden = self.hidden or self._makers.maker_of(bad[0].tensor)

    def _name(self, handle: int) -> str:
        found = self._names.get(handle)
        if found is None:
            text = ctypes.c_char_p()
            check_call(LIBRARY.MXSymbolGetAtomicSymbolName(ctypes.c_void_p(handle), ctypes.byref(text)))
            found = py_str(text.value)
            for prefix in _PREFIXES:
                found = found.removeprefix(prefix)
            self._names[handle] = found
        return found


def _memory(array: NDArray) -> tuple[int, int] | None:
    """Address and size of an array's memory; None of a sparse one, which has none of its own."""
    array = plain(array)
    if array.stype != "default":
        return None
    address = ctypes.c_void_p()
    check_call(LIBRARY.MXNDArrayGetData(array.handle, ctypes.byref(address)))
    return address.value or 0, array.size * np.dtype(array.dtype).itemsize


def _place() -> tuple[Place, FrameType | None] | None:
    """The place of the operation that is about to run, and the frame of its line; None where the agent computes."""
    block = ""
    frames = callers()
    # What leads here from the operation is the agent's.
    for frame in frames:
        if is_unseen(frame.f_code):
            break
    for frame in frames:
        code = frame.f_code
        if is_unseen(code):
            continue
        if code.co_filename.startswith(_AGENT):
            return None
        if not block and code.co_name in _FORWARDS:
            owner = first_argument(frame)
            block = _title(owner) if is_a(owner, Block) else ""
        if not str(frame.f_globals.get("__name__")).startswith(_MXNET):
            return Place(code.co_filename, frame.f_lineno, block), frame
    return Place("", 0, block), None


def _title(block: Block) -> str:
    """Name of a block, and its class where the name does not say it."""
    name, kind = name_of(block), type(block).__name__
    return name if kind.lower() in name else f"{name} ({kind})"


def _variable(frame: FrameType, array: NDArray) -> str:
    """The name of the variable of a function that holds an array; empty if none does."""
    return next((name for name, value in locals_of(frame).items() if value is array), "")
