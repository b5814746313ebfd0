"""Graph between what a tape has read and what it differentiates, traced or recorded.

It tells of each operation whether it comes from a variable that is trained, and whether from data. By that it is known
which variables stand behind those that are trained: a forgotten head does, a feature extractor and a teacher do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.plain_access import is_a
from smd_agent.tensorflow.graph.function_rewrite import CALLS, is_part
from smd_agent.tensorflow.types import Tensor, Variable

_TRAINED, _DATA = 1, 2
_BOTH = _TRAINED | _DATA

# What hands on a variable's values, in another shape or dtype.
_READS = ("Cast", "ExpandDims", "Identity", "ReadVariableOp", "Reshape", "Squeeze", "Transpose")
# What layers do with their kernels; a loop or a function may be a recurrent layer.
_PRODUCTS = ("MatMul", "BatchMatMul", "Conv", "Depthwise", "Einsum", "While", "StatelessWhile", *CALLS)
_MATRIX = 2
# Operations that apply softmax to what they are given first.
_OF_LOGITS = ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
_FLAT = ("Ceil", "Floor", "OnesLike", "Rint", "Round", "Shape", "Sign", "Size", "StopGradient", "ZerosLike")


class LossGraph:
    """The operations of a graph that stand before the tensors which a tape differentiates.

    Args:
        graph: that of a function, or one that was recorded.
        targets: these tensors, of which those of other graphs are left out.
        trained: the variables that the tape has found gradients for.
    """

    def __init__(self, graph: Any, targets: Iterable[Any], trained: Iterable[Variable]) -> None:
        self.targets: list[Tensor] = [target for target in targets if is_part(target, graph)]
        last = {target.op.name for target in self.targets}
        # An operation stands before those that use it.
        self._operations: list[Any] = []
        for operation in graph.get_operations() if last else ():
            self._operations.append(operation)
            last.discard(operation.name)
            if not last:
                break
        inside: dict[int, Tensor] = {id(outside): inner for outside, inner in attribute(graph, "captures", ())}
        self._inside = inside
        handles = (self._handle_in(variable) for variable in trained)
        self._trained = {handle.op.name for handle in handles if handle is not None}
        self._origins: dict[str, int] = {}
        for operation in self._operations:
            self._origins[operation.name] = self._origin_of(operation)

    def is_trained(self, tensor: Tensor) -> bool:
        """True if a tensor comes from a variable that is trained, and a gradient may reach it there."""
        return bool(self._origins.get(tensor.op.name, 0) & _TRAINED)

    def reached(self, variables: Sequence[Variable]) -> list[Variable]:
        """Those of some variables that have a say in the targets, by operations that gradients may pass."""
        handles = ((self._handle_in(variable), variable) for variable in variables)
        of: dict[str, Variable] = {handle.op.name: variable for handle, variable in handles if handle is not None}
        needed = self._differentiated() if of else frozenset()
        return [variable for name, variable in of.items() if name in needed]

    def behind(self, variables: Sequence[Variable]) -> list[Variable]:
        """Those of some variables that work on what variables which are trained have made of data, as layers do.

        Where no one of them is a matrix that is multiplied with it, they are no layers: there are none then.
        """
        handles = ((self._handle_in(variable), variable) for variable in variables)
        of: dict[str, Variable] = {handle.op.name: variable for handle, variable in handles if handle is not None}
        found: dict[int, Variable] = {}
        have_kernel = False
        needed = self._needed() if of else frozenset()
        for operation in self._operations if of else ():
            inputs = [*operation.inputs]
            own = [of[given.op.name] for given in inputs if given.op.name in of]
            if not own or operation.name not in needed:
                continue
            if operation.type in _READS:
                of[operation.name] = own[0]
            elif any(self._is_made_of_data(given) for given in inputs):
                found |= {id(variable): variable for variable in own}
                is_product = operation.type.startswith(_PRODUCTS)
                have_kernel |= is_product and any(len(tuple(one.shape)) >= _MATRIX for one in own)
        return [variable for variable in variables if id(variable) in found] if have_kernel else []

    def has_activated_logits(self) -> bool | None:
        """True if logits that a gradient reaches are what a softmax has returned; None if there are no logits."""
        kinds = {operation.name: operation for operation in self._operations if operation.type in _OF_LOGITS}
        needed = self._needed() if kinds else frozenset()
        makers = [_maker(operation.inputs[0]) for name, operation in kinds.items() if name in needed]
        return any(maker.type == "Softmax" for maker in makers) if makers else None

    def _handle_in(self, variable: Variable) -> Tensor | None:
        return self._inside.get(id(inner_variable(variable).handle))

    def _origin_of(self, operation: Any) -> int:
        kind = operation.type
        if kind == "Placeholder":
            is_resource = operation.outputs[0].dtype == tf.resource
            return (_TRAINED if operation.name in self._trained else 0) if is_resource else _DATA
        if kind == "Const":
            return _DATA if (operation.outputs[0].shape.rank or 0) >= _MATRIX else 0
        found = _DATA if "Random" in kind or kind.startswith("IteratorGetNext") else 0
        for given in operation.inputs:
            found |= self._origins.get(given.op.name, 0)
        return found & ~_TRAINED if kind == "StopGradient" else found

    def _is_made_of_data(self, tensor: Tensor) -> bool:
        return tensor.dtype != tf.resource and self._origins.get(tensor.op.name) == _BOTH

    def _differentiated(self) -> set[str]:
        """Names of the operations that a gradient may reach: it passes no integers, and nothing that is flat."""
        found = {target.op.name for target in self.targets}
        for operation in reversed(self._operations):
            if operation.name in found and operation.type not in _FLAT:
                passed = (given for given in operation.inputs if _may_have_gradient(given))
                found.update(given.op.name for given in passed)
        return found

    def _needed(self) -> set[str]:
        """Names of the operations that a gradient reaches."""
        found = {target.op.name for target in self.targets}
        for operation in reversed(self._operations):
            if operation.name in found and operation.type != "StopGradient":
                found.update(given.op.name for given in operation.inputs)
        return found


def _maker(tensor: Tensor) -> Any:
    """The operation that has made a tensor, behind those that hand on its values."""
    while tensor.op.type in _READS:
        tensor = tensor.op.inputs[0]
    return tensor.op


def _may_have_gradient(tensor: Tensor) -> bool:
    dtype: Any = tensor.dtype
    return bool(dtype.is_floating or dtype.is_complex or dtype == tf.resource)


def inner_variable(variable: Any) -> Any:
    """TensorFlow's variable, which Keras 3 has one of its own around."""
    return variable if is_a(variable, tf.Variable) else attribute(variable, "_value", variable)
