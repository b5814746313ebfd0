"""Types of TensorFlow's objects, as far as the agent uses them. TensorFlow comes without types.

A tensor of a graph has a name, an operation and a graph; an eager one has values. ``Tensor`` stands for both: which of
them it is, the place where it comes up knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt

Nested = object
"""Lists, tuples and dicts with tensors, variables or anything else in them, as ``tf.nest`` takes them apart."""

Function = Callable[..., Any]
"""A method of TensorFlow's: called as it is, with whatever the program gives it."""


class DType(Protocol):
    """Type of a tensor's elements."""

    name: str
    as_datatype_enum: int

    @property
    def base_dtype(self) -> DType:
        """The type without "by reference"."""


class Shape(Protocol):
    """Shape of a symbolic tensor; sizes may be unknown."""

    rank: int | None

    def as_list(self) -> list[int | None]:
        """The sizes, None where unknown."""


class ArgDef(Protocol):
    """One output of a kind of operation; it may stand for several tensors."""

    name: str
    number_attr: str
    type_list_attr: str


class OpDef(Protocol):
    """Kind of an operation."""

    is_stateful: bool
    output_arg: Sequence[ArgDef]
    attr: Sequence[Any]


class Operation(Protocol):
    """A node of a graph."""

    name: str
    type: str

    @property
    def graph(self) -> Graph:
        """The graph it belongs to."""

    @property
    def op_def(self) -> OpDef:
        """Its kind."""

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors it computes with."""

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The tensors it computes."""

    @property
    def control_inputs(self) -> Sequence[Operation]:
        """The operations that have to run before it."""

    def get_attr(self, name: str) -> Any:
        """One of its attributes."""


class Graph(Protocol):
    """A graph: of a session, or of a function while it is traced."""

    inputs: Sequence[Tensor]

    def as_default(self) -> AbstractContextManager[object]:
        """Make it the graph in which operations are built."""

    def get_operations(self) -> Sequence[Operation]:
        """All its operations."""

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of this name."""

    def as_graph_element(self, part: object) -> Any:
        """The tensor or operation that something fetched or fed stands for."""

    def is_fetchable(self, part: object) -> bool:
        """True if a session may fetch it."""

    def get_collection(self, name: str) -> Sequence[Any]:
        """The things that a program has put together under this name."""


class Tensor(Protocol):
    """A tensor, symbolic or eager."""

    name: str
    value_index: int

    @property
    def dtype(self) -> DType:
        """Type of its elements."""

    @property
    def shape(self) -> Shape:
        """Its shape."""

    @property
    def graph(self) -> Graph:
        """The graph of a symbolic tensor."""

    @property
    def op(self) -> Operation:
        """The operation that computes a symbolic tensor."""


class Variable(Protocol):
    """A variable: TensorFlow's own, a distributed one or one of Keras 3."""

    @property
    def name(self) -> str:
        """The name that TensorFlow has for it."""

    @property
    def shape(self) -> Iterable[int]:
        """Its shape."""

    def numpy(self) -> npt.NDArray[Any]:
        """A copy of its value."""


class KerasVariable(Variable, Protocol):
    """A variable of Keras 3, around one of TensorFlow's."""

    path: str
    value: Variable


class Layer(Protocol):
    """A layer of Keras."""

    name: str


class Tape(Protocol):
    """A ``tf.GradientTape``."""

    def gradient(self, target: Nested, sources: Nested) -> Nested:
        """Differentiate."""


class Optimizer(Protocol):
    """An optimizer of Keras, whose ``variables`` are a list (3) or a method (2), or one of ``tf.compat.v1``."""

    variables: Any


class NodeDef(Protocol):
    """A node in the definition of a function."""

    name: str
    op: str
    input: Sequence[str]

    @property
    def attr(self) -> MutableMapping[str, Any]:
        """Its attributes, by name."""


class FunctionDef(Protocol):
    """The definition of a function: what ``tf.function`` has compiled, as data."""

    signature: Any
    node_def: Sequence[NodeDef]
    attr: Mapping[str, Any]
    ret: Mapping[str, str]


class FunctionType(Protocol):
    """The types that a function takes and returns."""

    def pack_output(self, flat: Sequence[Tensor]) -> Any:
        """The value that Python gets for the flat outputs."""


class ConcreteFunction(Protocol):
    """One trace of a ``tf.function``."""

    function_def: FunctionDef
    function_type: FunctionType

    @property
    def graph(self) -> Graph:
        """The graph it was traced into."""

    def _call_flat(self, *args: object, **kwargs: object) -> Any:
        """Run it on its flat inputs."""


class Session(Protocol):
    """A session of ``tf.compat.v1``."""

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""

    def run(self, fetches: Nested) -> Any:
        """Compute."""


class RunArgs(Protocol):
    """The fetches and feeds that the program asks of a session's run."""

    fetches: Nested
    feed_dict: Mapping[Any, object] | None


class RunContext(Protocol):
    """A run of a session that is about to start, or has ended."""

    original_args: RunArgs

    @property
    def session(self) -> Session:
        """The session without its wrappers."""


class RunValues(Protocol):
    """The values that a run has given."""

    results: Any


class Strategy(Protocol):
    """A distribution strategy."""

    cluster_resolver: Any
