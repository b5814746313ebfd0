"""Graph of the operations of an eager step, which TensorFlow keeps for none: as a traced function's, to be looked at.

TensorFlow calls back after each operation of a thread (``op_callbacks``, which ``tf.debugging`` is built on). What is
noted of one is its type, the shapes of what it returns, and which operations have made what it was given.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.framework import op_callbacks

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import Reference
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.graph.loss_graph import inner_variable

# Operations of one step; a longer one is not looked at.
_MOST = 4096
# Elements by which a variable is known again.
_SAMPLE = 256
# What stands for the handle of a variable, for its values, and for all else that nothing here has made.
_HANDLE, _READ, _GIVEN = "Placeholder", "ReadVariableOp", "Const"


class RecordedOperation:
    """An operation that has run.

    Attributes:
        name: another one for each.
        type: of TensorFlow's, such as ``MatMul``.
        inputs: what it was given.
        outputs: what it has returned.
    """

    __slots__ = ("inputs", "name", "outputs", "type")

    def __init__(self, name: str, kind: str, inputs: list[RecordedTensor]) -> None:
        self.name = name
        self.type = kind
        self.inputs = inputs
        self.outputs: list[RecordedTensor] = []


class RecordedTensor:
    """A tensor that an operation has made, without its values.

    Attributes:
        graph: the whole.
        op: the operation.
        name: another one for each.
        shape, dtype: TensorFlow's.
    """

    __slots__ = ("dtype", "graph", "name", "op", "shape")

    def __init__(self, graph: RecordedGraph, op: RecordedOperation, number: int, tensor: Any) -> None:
        self.graph = graph
        self.op = op
        self.name = f"{op.name}:{number}"
        self.shape, self.dtype = tensor.shape, tensor.dtype
        op.outputs.append(self)


class RecordedGraph:
    """The operations of a step so far.

    Attributes:
        captures: handles of variables, and the tensors that stand for them.
    """

    def __init__(self) -> None:
        self.captures: list[tuple[Any, RecordedTensor]] = []
        self._operations: list[RecordedOperation] = []
        self._asked: set[str] = set()
        self._made: dict[int, tuple[weakref.ref[Any], RecordedTensor]] = {}
        # What nothing here has made; a variable may have been read for it without a word.
        self._given: list[tuple[Any, RecordedTensor]] = []

    def get_operations(self) -> Sequence[RecordedOperation]:
        """The operations, in turn."""
        return self._operations

    @property
    def is_whole(self) -> bool:
        """True if no operation was left out."""
        return len(self._operations) < _MOST

    def add(self, kind: str, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """An operation has run."""
        if not self.is_whole:
            return
        operation = self._operation(kind, [self._source(one) for one in inputs if is_a(one, tf.Tensor)])
        for number, one in enumerate(outputs):
            if is_a(one, tf.Tensor):
                self._made[id(one)] = Reference(one), RecordedTensor(self, operation, number, one)

    def new_of(self, tensors: Iterable[Any]) -> list[RecordedTensor]:
        """Those of some tensors, as recorded, that operations here have made, and that were not asked for before."""
        made = [found for one in tensors if (found := self._known(one)) is not None]
        new = [one for one in made if one.name not in self._asked]
        self._asked.update(one.name for one in new)
        return new

    def connect(self, variables: Iterable[Any]) -> None:
        """Find which given tensors are the values of variables; then nothing holds on to them any more."""
        given, self._given = self._given, []
        known = {id(handle) for handle, _ in self.captures}
        for variable in variables:
            inner = inner_variable(variable)
            reads = [(tensor, stands) for tensor, stands in given if _is_read_of(tensor, inner)]
            same = [stands for tensor, stands in reads if _place_of(tensor) == _place_of(inner)]
            found = same or [stands for _, stands in reads if stands.op.type != _READ]
            if found and id(inner.handle) not in known:
                operation = RecordedOperation(f"handle_{len(self.captures)}", _HANDLE, [])
                self._operations.insert(0, operation)
                self.captures.append((inner.handle, RecordedTensor(self, operation, 0, inner.handle)))
            for stands in found:
                (handle,) = (one for outside, one in self.captures if outside is inner.handle)
                stands.op.type, stands.op.inputs = _READ, [handle]

    def _operation(self, kind: str, inputs: list[RecordedTensor]) -> RecordedOperation:
        operation = RecordedOperation(f"{kind}_{len(self._operations)}", kind, inputs)
        self._operations.append(operation)
        return operation

    def _known(self, tensor: Any) -> RecordedTensor | None:
        found = self._made.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def _source(self, tensor: Any) -> RecordedTensor:
        found = self._known(tensor)
        if found is None:
            is_handle = tensor.dtype == tf.resource
            found = RecordedTensor(self, self._operation(_HANDLE if is_handle else _GIVEN, []), 0, tensor)
            self._made[id(tensor)] = Reference(tensor), found
            (self.captures if is_handle else self._given).append((tensor, found))
        return found


def _is_read_of(tensor: Any, variable: Any) -> bool:
    if tensor.shape.rank in (None, 0) or tensor.shape != variable.shape or tensor.dtype != variable.dtype:
        return False
    one, other = (to_array(tf.reshape(found, [-1])[:_SAMPLE]) for found in (tensor, variable))
    return one is not None and other is not None and bool(np.array_equal(one[0], other[0]))


def _place_of(values: Any) -> int | None:
    """The address of the values of a tensor or a variable; those of a variable that was read are the variable's."""
    found = to_array(values)
    return None if found is None else int(found[0].ctypes.data)


class _OfThread(threading.local):
    """The recording of this thread, if there is one."""

    graph: RecordedGraph | None = None
    on = False


class Recording:
    """The operations of a thread, recorded where that is asked for; where others call back already, none are."""

    def __init__(self) -> None:
        self._of = _OfThread()

    def begin(self) -> None:
        """Record from now on, a new step unless one is being recorded."""
        if not self._of.on and not context.context().op_callbacks:
            self._of.on, self._of.graph = True, RecordedGraph()
            op_callbacks.add_op_callback(self._ran)

    def end(self) -> RecordedGraph | None:
        """Record no more; returns what was recorded last."""
        if self._of.on:
            self._of.on = False
            op_callbacks.remove_op_callback(self._ran)
        return self._of.graph

    def forget(self) -> None:
        """Record no more, and let go of what was recorded."""
        self.end()
        self._of.graph = None

    @LOSS_FACTS.fence("recording the operations of an eager step")
    def _ran(
        self, op_type: str | bytes, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """An operation has run, or has been put into a graph."""
        # What no tape records, such as an evaluation after a loss that nobody differentiates, is no part of a loss.
        if graph is None and self._of.graph is not None and record.could_possibly_record() and tf.executing_eagerly():
            name = op_type.decode() if is_a(op_type, bytes) else str(op_type)
            self._of.graph.add(name, inputs, outputs)
