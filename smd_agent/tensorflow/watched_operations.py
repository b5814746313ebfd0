"""Operations that TensorFlow runs eagerly, told to the makers of values that are not finite.

TensorFlow calls back after each operation of a thread (``op_callbacks``, which ``tf.debugging`` is built on). In a
backward pass the function that computes the gradient of an operation is among the callers, with the operation's name
and tensors, by which the line of the forward pass is found.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.eager import backprop, record
from tensorflow.python.framework import op_callbacks

import smd_agent
from smd_agent.framework.keras import step_function
from smd_agent.framework.made_values import Place
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.value_makers import Makers, Operation, Value, kind_of
from smd_agent.framework.weak_references import Reference
from smd_agent.interpreter.callers import callers, first_argument
from smd_agent.interpreter.living_objects import living
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.variable_names import is_variable, plain_name

_READS = "ReadVariableOp"
_WRITES = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_BATCHES = ("IteratorGetNext", "OptionalGetValue", "IteratorGetNextSync")
_BACKWARD = "the backward pass"
# A layer is called by these, or is not called for what it computes.
_CALLS = ("call", "__call__")
_GRADIENT = vars(backprop).get("_gradient_function")
_GRADIENT_CODE = None if _GRADIENT is None else _GRADIENT.__code__

_INSTALLED = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
# Folders of code that is not the program's.
_LIBRARIES = (
    *(os.path.join(_INSTALLED, name) + os.sep for name in ("tensorflow", "keras", "tf_keras", "numpy")),
    os.path.dirname(os.path.abspath(smd_agent.__file__)) + os.sep,
)
_PYTHONS = os.path.dirname(os.__file__) + os.sep
_STEP = os.path.abspath(step_function.__file__)


class WatchedOperations:
    """The operations of the thread that trains.

    Args:
        makers: are told of them.

    Attributes:
        in_backward: a tape computes gradients.
    """

    def __init__(self, makers: Makers) -> None:
        self._makers = makers
        self._is_on = False
        self.in_backward = False
        # Where operations of the forward pass stand, by what they have made and by what they were given.
        self._places: dict[tuple[str, int], tuple[weakref.ref[Any], Place]] = {}
        self._variables: list[tuple[str, npt.NDArray[Any]]] | None = None

    def begin(self) -> None:
        """Watch from now on; functions that are called run operation by operation."""
        if not self._is_on:
            self._is_on = True
            tf.config.run_functions_eagerly(True)
            op_callbacks.add_op_callback(self._ran)

    def end(self) -> None:
        """Watch no more; functions run as they were compiled."""
        if self._is_on:
            self._is_on = False
            op_callbacks.remove_op_callback(self._ran)
            tf.config.run_functions_eagerly(False)

    def forget(self) -> None:
        """Another step begins."""
        self._places.clear()
        self._variables = None

    # How it is done.

    def _ran(
        self, op_type: str | bytes, inputs: Any, attrs: Any, outputs: Any, op_name: Any = None, graph: Any = None
    ) -> None:
        """An operation has run, or has been put into a graph."""
        if graph is not None or not tf.executing_eagerly():
            return
        name = op_type.decode() if is_a(op_type, bytes) else str(op_type)
        if name in _WRITES:
            self._makers.goes(inputs[1], inputs[0])
            return
        results = [*_values(outputs)]
        behind, place = self._whereabouts(name, inputs, outputs)
        if not any(kind_of(one.array) for one in results):
            self._look_at_rows(name, inputs, outputs)
            return
        if name == _READS and self._makers.knows(inputs[0]):
            self._makers.goes(inputs[0], results[0].tensor)
        elif name == _READS:
            self._find_weights(results)
        elif name in _BATCHES:
            self._look_at_rows(name, inputs, outputs)
            for one in results:
                self._makers.comes(one, "the batch that the step was given has {}")
        else:
            self._look_at_rows(name, inputs, outputs)
            given = [*_values(inputs)]
            # Where an operation is given a variable, TensorFlow reads it without a word.
            self._find_weights(given)
            self._makers.saw(Operation(name, place, behind), given, results)

    def _find_weights(self, values: Iterable[Value]) -> None:
        """Say which of these are variables that are not finite; a mask of -inf is none."""
        for one in values:
            if kind_of(one.array) in ("", "-inf") or self._makers.knows(one.tensor):
                continue
            name = next((name for name, array in self._bad_variables() if _is_same(array, one.array)), "")
            if name:
                self._makers.comes(one, f"the weights had {{}} before: {name}", of_weights=True)

    def _bad_variables(self) -> list[tuple[str, npt.NDArray[Any]]]:
        """The variables that are not finite, by name; looked for once in each step."""
        if self._variables is None:
            # It reads them.
            self._variables = []
            self._variables = [(name, array) for name, array in _variables() if kind_of(array)]
        return self._variables

    def _look_at_rows(self, name: str, inputs: Any, outputs: Any) -> None:
        """A batch that comes from a dataset tells how many rows it has, else what the first operation is given."""
        is_batch = name in _BATCHES
        if not is_batch and (self._makers.rows or self.in_backward or not record.could_possibly_record()):
            return
        least = 1 if is_batch else 2
        tensors = (one for one in (outputs if is_batch else inputs) if is_a(one, tf.Tensor))
        shape = next((one.shape for one in tensors if (one.shape.rank or 0) >= least), None)
        if shape is not None:
            self._makers.rows = int(shape[0])

    def _whereabouts(self, name: str, inputs: Any, outputs: Any) -> tuple[str, Callable[[], Place | None]]:
        """In words, of what the operation computes the gradient, and a function that tells where it stands."""
        if not self.in_backward:
            place = _place()
            if place is not None:
                for one in (*outputs, *inputs):
                    if is_a(one, tf.Tensor):
                        self._places[name, id(one)] = Reference(one), place
            return "", lambda: place
        of = next((frame for frame in callers() if frame.f_code is _GRADIENT_CODE), None)
        if of is None:
            return _BACKWARD, lambda: None
        forward = str(of.f_locals.get("op_name"))
        return f"the gradient of {forward}", lambda: self._place_of(forward, of)

    def _place_of(self, forward: str, frame: FrameType) -> Place | None:
        for name in ("outputs", "inputs"):
            for one in frame.f_locals.get(name) or ():
                known = self._places.get((forward, id(one)))
                if known is not None and known[0]() is one:
                    return known[1]
        return None


def _values(tensors: Any) -> Iterator[Value]:
    """The tensors among them that have floating-point numbers."""
    for one in tensors:
        if is_a(one, tf.Tensor) and one.dtype.is_floating:
            found = to_array(one)
            if found is not None and is_a(found[0], np.ndarray):
                yield Value(one, found[0])


def _is_same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=True))


def _place() -> Place | None:
    """The line of the program's that is running, as far as it stands in the step, and the innermost layer."""
    module, file, line = "", "", 0
    for frame in callers():
        code = frame.f_code
        if code.co_filename.startswith(_STEP):
            break
        if not file and not _is_librarys(code.co_filename):
            file, line = code.co_filename, frame.f_lineno
        if not module and code.co_name in _CALLS:
            module = _layer_name(first_argument(frame))
        if file and module:
            break
    return Place(file, line, module) if file or module else None


def _is_librarys(file: str) -> bool:
    if file.startswith(_LIBRARIES) or file.startswith("<"):
        return True
    return file.startswith(_PYTHONS) and not file.startswith(_INSTALLED)


def _layer_name(found: object) -> str:
    if not any(base.__name__ == "Layer" for base in type(found).__mro__):
        return ""
    name = attribute(found, "_name")
    return name if is_a(name, str) else str(attribute(found, "name") or "")


def _variables() -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """All variables that are alive: Keras's, which are around TensorFlow's, come first."""
    found = [one for one in living(object) if is_variable(one)]
    for one in sorted(found, key=lambda one: is_a(one, tf.Variable)):
        array = to_array(one)
        if array is not None and array[0].dtype.kind == "f":
            yield plain_name(one), array[0]
