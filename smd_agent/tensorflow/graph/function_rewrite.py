"""A compiled function with further outputs, made from what TensorFlow has compiled already.

The definition of a function is data (a ``FunctionDef``): its copy gets more outputs and another name. Nothing of the
user's Python runs again, the user's own function stays as it is, and what holds for it (XLA, devices, order of side
effects) stands in the copy too. Values inside a function that it calls, or inside a branch that it takes, are reached
by giving that call in the copy further outputs likewise. Bodies of loops are out of reach.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, op_def_pb2, types_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry

from smd_agent.framework.keras.plain_access import attribute
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.tensorflow.types import ArgDef, FunctionDef, Graph, NodeDef, Operation, Tensor

SUFFIX = "_smd_agent"
_numbers = itertools.count()

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES = ("If", "StatelessIf")
_XLA = "_XlaMustCompile"

UNREADABLE = (types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT)
"""Numbers of the types of which more than their value has to be returned to Python."""


@dataclass(frozen=True)
class Output:
    """A value inside a function.

    ref: the node's name, the output's name in its op definition and the number within it: ``"MatMul:product:0"``.
    dtype: number in TensorFlow's DataType.
    shape: as far as it is known when the function is traced; None where it is not.
    """

    ref: str
    dtype: int
    shape: tuple[int | None, ...] | None = None

    @property
    def is_of_unknown_shape(self) -> bool:
        """True if the shape is not known before it is computed."""
        return self.shape is None or None in self.shape


class Unreachable(Exception):
    """A value is not there in the compiled function."""


def is_part(tensor: object, graph: Graph) -> bool:
    """True if something is a tensor of a graph."""
    return attribute(tensor, "graph") is graph


def output_of(tensor: Tensor, graph: Graph) -> Output:
    """The output of the compiled function that is a symbolic tensor of its graph.

    Raises:
        Unreachable: it belongs to another graph, or is nothing that Python could read.
    """
    if not is_part(tensor, graph):
        raise Unreachable(f"{tensor!r} is not part of the function")
    dtype = tensor.dtype.as_datatype_enum
    if dtype in UNREADABLE:
        raise Unreachable(f"{tensor.name} is a {tensor.dtype.name}")
    shape = tuple(tensor.shape.as_list()) if tensor.shape.rank is not None else None
    for position, given in enumerate(tensor.graph.inputs):
        if given is tensor:
            return Output(f"{tensor.op.name}:input:{position}", dtype, shape)
    number = tensor.value_index
    for argument in tensor.op.op_def.output_arg:
        length = _length(tensor.op, argument)
        if number < length:
            return Output(f"{tensor.op.name}:{argument.name}:{number}", dtype, shape)
        number -= length
    raise Unreachable(f"{tensor.name} is not an output of {tensor.op.type}")


def _length(op: Operation, argument: ArgDef) -> int:
    if argument.number_attr:
        return int(op.get_attr(argument.number_attr))
    return len(op.get_attr(argument.type_list_attr)) if argument.type_list_attr else 1


@dataclass(frozen=True)
class Tap:
    """A value that somebody asked for; ``key`` says what it is and is not looked at here."""

    key: Any
    output: Output


Taps = Callable[[str], Sequence[Tap]]
"""Gives the values to be had from a function by the function's name; empty for most."""


@dataclass(frozen=True)
class Further:
    """A further value of a variant.

    key: what it is; None where it is there for others.
    output: what computes it.
    branch: the position among the further values of the boolean that says whether it was computed; None: always.
    """

    key: Any
    output: Output
    branch: int | None = None


class Variant:
    """A function that returns what its original returns, and further values.

    It is registered with TensorFlow's runtime and has to be kept as long as it is called.

    Args:
        definition: of the function; it is not changed.
        taps: what is to be had from it and from the functions that it calls. Of values that XLA may round otherwise
            when they are returned, ``key.fragile`` is true.
        in_branches: whether to look for values in branches that it takes, too.
        top: whether it is called from Python.
        in_xla: whether what calls it is compiled by XLA.

    Attributes:
        further: the further values, in their order.
        left_out: values in functions that XLA compiles which it would round otherwise if they were returned.
        carries_state: random numbers that it draws depend on how often it was called: the original and this must not
            take turns.

    Raises:
        Unreachable: one of the values is not there.
    """

    def __init__(
        self, definition: FunctionDef, taps: Taps, *, in_branches: bool = True, top: bool = True, in_xla: bool = False
    ) -> None:
        self._context = context.context()
        copy = function_pb2.FunctionDef()
        copy.CopyFrom(definition)
        copy.signature.name += f"{SUFFIX}_{next(_numbers)}"
        self.name = copy.signature.name
        self.own_outputs = len(copy.signature.output_arg)
        self.further: list[Further] = []
        self.left_out: list[Any] = []
        self.carries_state = top and carries_state(definition)
        self._in_branches = in_branches
        self._in_xla = in_xla or definition.attr[_XLA].b
        self._registered = False
        self._slots: list[Any] = []
        self._copy = copy
        self._inner: list[Variant] = []
        self._tap(definition.signature.name, taps)
        for node in list(copy.node_def):
            if node.op in CALLS:
                self._widen_call(node, taps)
            elif node.op in _BRANCHES and in_branches:
                self._widen_branches(node, taps)
        if top and not self.own_outputs and not self._in_xla:
            self._slots = [self._write(number, one.output) for number, one in enumerate(self.further)]
        else:
            for number, one in enumerate(self.further):
                self._return(number, one.output)

    def __len__(self) -> int:
        return len(self.further)

    def register(self) -> None:
        """Make it known to the runtime; to be done once before it is called."""
        for inner in self._inner:
            inner.register()
        if not self._registered:
            self._registered = True
            self._context.add_function_def(self._copy)

    def release(self) -> None:
        """Have the runtime forget it."""
        for inner in self._inner:
            inner.release()
        if self._registered and self._context.has_function(self.name):
            self._context.remove_function(self.name)
        slots, self._slots = self._slots, []
        # It may come while the program builds a graph.
        with context.eager_mode():
            for slot in slots:
                tf.raw_ops.DestroyResourceOp(resource=slot)

    @unseen
    def call(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Run it eagerly on the original's flat inputs, captures included.

        Returns:
            The original's flat outputs, and the further values.
        """
        if self._slots:
            self._context.call_function(self.name.encode(), [*inputs, *self._slots], 0)
            pairs = zip(self._slots, self.further, strict=True)
            return [], [tf.raw_ops.ReadVariableOp(resource=s, dtype=tf.as_dtype(o.output.dtype)) for s, o in pairs]
        found = self._context.call_function(self.name.encode(), list(inputs), self.own_outputs + len(self))
        return list(found[: self.own_outputs]), list(found[self.own_outputs :])

    # How it is done.

    def _tap(self, function: str, taps: Taps) -> None:
        nodes = {node.name: node for node in self._copy.node_def}
        arguments = [argument.name for argument in self._copy.signature.input_arg]
        for tap in taps(function):
            if self._in_xla and tap.key.fragile and ":input:" not in tap.output.ref:
                self.left_out.append(tap.key)
            else:
                self.further.append(Further(tap.key, _resolved(tap.output, nodes, arguments)))

    def _variant_of(self, name: str, taps: Taps) -> Variant | None:
        # A function may be called from several places, each of which needs outputs of its own.
        if not self._context.has_function(name):
            return None
        definition = self._context.get_function_def(name)
        inner = Variant(definition, taps, in_branches=self._in_branches, top=False, in_xla=self._in_xla)
        self.left_out.extend(inner.left_out)
        return inner

    def _widen_call(self, node: NodeDef, taps: Taps) -> None:
        inner = self._variant_of(node.attr["f"].func.name, taps)
        if inner is None or not len(inner):
            return
        self._inner.append(inner)
        node.attr["f"].func.name = inner.name
        self._follow(node, inner)

    def _widen_branches(self, node: NodeDef, taps: Taps) -> None:
        sides = ("then_branch", "else_branch")
        found = [v for side in sides if (v := self._variant_of(node.attr[side].func.name, taps)) is not None]
        if len(found) < len(sides):
            return
        # Of two branches that both compute something wanted, the first is taken.
        taken = 0 if len(found[0]) else 1
        inner, other = found[taken], found[1 - taken]
        if not len(inner) or len(other) or any(one.output.is_of_unknown_shape for one in inner.further):
            return
        inner._flag()
        other._stand_in(inner)
        for side, variant in zip(sides, found, strict=True):
            node.attr[side].func.name = variant.name
            self._inner.append(variant)
        self._follow(node, inner, flagged=True)

    def _follow(self, node: NodeDef, inner: Variant, flagged: bool = False) -> None:
        first = len(node.attr["Tout"].list.type)
        node.attr["Tout"].list.type.extend(one.output.dtype for one in inner.further)
        # Shapes noted for the outputs would now be too few.
        for shapes in ("_output_shapes", "output_shapes"):
            if shapes in node.attr:
                if node.op in _BRANCHES and shapes == "output_shapes":
                    node.attr[shapes].list.ClearField("shape")
                else:
                    del node.attr[shapes]
        base = len(self.further)
        for i, one in enumerate(inner.further):
            where = None if one.branch is None else base + one.branch
            if flagged and where is None and i != len(inner) - 1:
                where = base + len(inner) - 1
            output = replace(one.output, ref=f"{node.name}:output:{first + i}")
            self.further.append(Further(one.key, output, where))

    def _flag(self) -> None:
        self._append(self._constant(types_pb2.DT_BOOL, (), True))

    def _stand_in(self, inner: Variant) -> None:
        for one in inner.further:
            assert one.output.shape is not None
            self._append(self._constant(one.output.dtype, tuple(size or 0 for size in one.output.shape), False))

    def _append(self, output: Output) -> None:
        self._return(len(self.further), output)
        self.further.append(Further(None, output))

    def _return(self, number: int, output: Output) -> None:
        """Give the copy one more output."""
        name = f"smd_agent_{number}"
        self._copy.signature.output_arg.add(name=name, type=output.dtype)
        self._copy.ret[name] = output.ref

    def _write(self, number: int, output: Output) -> Any:
        """Have a function without outputs put a value into a variable of ours, whose handle is one more input.

        TensorFlow's graph optimizer goes about a function that returns nothing more carefully than about any other:
        with outputs, the copy would be optimized further than the original and round otherwise.
        """
        name = f"smd_agent_{number}"
        self._copy.signature.input_arg.add(name=name, type=types_pb2.DT_RESOURCE)
        node = self._copy.node_def.add(name=f"{name}_write", op="AssignVariableOp", input=[name, output.ref])
        node.attr["dtype"].type = output.dtype
        node.attr["validate_shape"].b = False
        self._copy.control_ret[node.name] = node.name
        self._copy.signature.control_output.append(node.name)
        dtype = tf.as_dtype(output.dtype)
        return tf.raw_ops.VarHandleOp(dtype=dtype, shape=tf.TensorShape(None), shared_name=f"{self.name}_{number}")

    def _constant(self, dtype: int, shape: tuple[int, ...], value: bool) -> Output:
        node = self._copy.node_def.add(name=f"smd_agent_const_{len(self._copy.node_def)}", op="Const")
        node.attr["dtype"].type = dtype
        tensor = node.attr["value"].tensor
        tensor.dtype = dtype
        tensor.tensor_shape.SetInParent()
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        if dtype == types_pb2.DT_BOOL:
            # One value stands for all.
            tensor.bool_val.append(value)
        return Output(f"{node.name}:output:0", dtype, shape)


def _resolved(output: Output, nodes: Container[str], arguments: Sequence[str]) -> Output:
    node, port, number = output.ref.split(":")
    if port == "input":
        return Output(arguments[int(number)], output.dtype, output.shape)
    if node not in nodes:
        raise Unreachable(f"{node} is not part of the compiled function")
    return output


def carries_state(definition: FunctionDef) -> bool:
    """True if a function, or one that it runs in whatever way, counts how often it was called.

    Kernels of random operations and of named resources do: each function that holds one has a row of random numbers of
    its own.
    """
    library = context.context()
    waiting, seen = [definition], set()
    while waiting:
        for node in waiting.pop().node_def:
            if _keeps_state(node):
                return True
            for name in functions_of(node):
                if name not in seen and library.has_function(name):
                    seen.add(name)
                    waiting.append(library.get_function_def(name))
    return False


def functions_of(node: NodeDef) -> Iterator[str]:
    """Names of the functions that a node runs: by calling them, as branches, or in a loop."""
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "func":
            yield value.func.name
        elif kind == "list":
            yield from (function.name for function in value.list.func)


def _keeps_state(node: NodeDef) -> bool:
    if "seed" not in node.attr and "shared_name" not in node.attr:
        return False
    definition: op_def_pb2.OpDef | None = op_def_registry.get(node.op)
    return definition is not None and definition.is_stateful
