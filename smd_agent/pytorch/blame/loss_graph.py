"""The operation that has made a loss not finite, told from the loss's graph alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from smd_agent.pytorch.blame.graph import Graph, saved_by
from smd_agent.pytorch.blame.operations import kind_of, rows_not_finite

_FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _div(kept: dict[str, torch.Tensor]) -> torch.Tensor:
    return kept.get("self", torch.ones_like(kept["other"])) / kept["other"]


# What an operation returns, computed from what its node has kept.
_AGAIN: dict[str, Callable[[dict[str, torch.Tensor]], torch.Tensor]] = {
    "Div": _div,
    "Log": lambda kept: kept["self"].log(),
    "Log2": lambda kept: kept["self"].log2(),
    "Log10": lambda kept: kept["self"].log10(),
    "Log1P": lambda kept: kept["self"].log1p(),
    "Mul": lambda kept: kept["self"] * kept["other"],
    "Acos": lambda kept: kept["self"].acos(),
    "Asin": lambda kept: kept["self"].asin(),
    "Xlogy": lambda kept: torch.xlogy(kept["self"], kept["other"]),
    "MseLoss": lambda kept: (kept["self"] - kept["target"]).square(),
    "NllLoss": lambda kept: 1 / kept["total_weight"],
}
# An operation that has these in its name has no elements to compute its result of.
_OF_NONE = ("Mean", "Std", "Var")


# Which of an operation's inputs an argument is, by its name; the first one otherwise.
_SECOND = {"other", "target", "mat1", "mat2", "batch1", "tensor1", "exponent", "weight", "vec"}
_THIRD = {
    ("Addmm", "mat2"),
    ("Baddbmm", "batch2"),
    ("Addbmm", "batch2"),
    ("Addcmul", "tensor2"),
    ("Addcdiv", "tensor2"),
}
# What comes out of these is not finite where what goes in is not.
_PASSING = {
    *("Relu", "Clone", "ToCopy", "View", "UnsafeView", "ReshapeAlias", "Transpose", "Permute", "T", "Expand", "Slice"),
    *("Squeeze", "Unsqueeze", "Select", "Index", "Gather", "Split", "Unbind", "Alias", "LeakyRelu", "NativeDropout"),
}
# Their gradient is infinite at some value, such as 0, at which they are not.
_STEEP = {"Sqrt", "Pow", "LinalgVectorNorm", "Norm", "Acos", "Asin", "Std", "Cdist", "Acosh"}
# Their results may be infinite where nothing is wrong.
_OF_MASKS = {"LogSoftmax"}


class Step(NamedTuple):
    """An operation of a graph that is to blame.

    number: of its node.
    operation: its name, without what PyTorch adds to it.
    kind: ``NaN``, ``inf`` or ``-inf``.
    given: the smallest and the largest value of the tensors that it was given, as far as they are known.
    rows: of what it made, or was given, that are not finite; None where there are none.
    beside: whether it was given something that is not finite and not in the graph, as labels are.
    """

    number: int
    operation: str
    kind: str
    given: list[tuple[float, float]]
    rows: list[int] | None
    beside: bool


def operation_of(node: Any) -> str:
    """The operation of a node, as ``div`` of ``DivBackward0``."""
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in _name(node)).removeprefix("_")


def steep_operations(graph: Graph, first: int) -> list[str]:
    """The operations whose gradient is infinite somewhere where they are finite; ``first``: as in ``maker``."""
    found = [operation_of(node) for number, node in graph.nodes.items() if number >= first and _is_steep(node)]
    return [*dict.fromkeys(found)]


def _is_steep(node: Any) -> bool:
    exponent = getattr(node, "_saved_exponent", 0.5)
    return _name(node) in _STEEP and (type(exponent) not in (int, float) or exponent < 1)


def maker(graph: Graph, first: int) -> Step | None:
    """The operation that has made a loss not finite, as far as its graph tells.

    Args:
        graph: of the loss.
        first: number of the first node that is looked at; what comes before has made finite values.
    """
    infinite: list[Step] = []
    for number, node in graph.nodes.items():
        found = _judged(number, node, graph) if number >= first else None
        if found is None:
            continue
        if found.kind == "NaN":
            reached = _behind(graph, number)
            return next((one for one in infinite if one.number in reached), found)
        infinite.append(found)
    return infinite[0] if infinite else None


def _judged(number: int, node: Any, graph: Graph) -> Step | None:
    kept = _kept(node)
    given = {name: one for name, one in kept.items() if not _is_result(name)}
    bad = next(((name, one) for name, one in given.items() if kind_of(one)), None)
    if bad is not None:
        return _of_input(number, node, *bad, graph)
    made = _made(node, kept)
    kind = "" if made is None else kind_of(made) if made.numel() else "NaN"
    if made is None or not kind or (kind != "NaN" and _name(node) in _OF_MASKS):
        return None
    if _name(node) in _PASSING:
        return _of_source(node.next_functions[0][0], kind, _rows(made), graph)
    return Step(number, operation_of(node), kind, _spans(given), _rows(made), False)


def _of_input(number: int, node: Any, name: str, bad: torch.Tensor, graph: Graph) -> Step | None:
    """The operation that has made what a node was given."""
    place = 2 if (_name(node), name) in _THIRD else int(name in _SECOND)
    edges = node.next_functions
    source = edges[place][0] if place < len(edges) else None
    if source is None:
        return Step(number, operation_of(node), kind_of(bad), [], _rows(bad), True)
    return _of_source(source, kind_of(bad), _rows(bad), graph)


def _of_source(source: Any, kind: str, rows: list[int] | None, graph: Graph) -> Step | None:
    while source is not None and _name(source) in _PASSING:
        source = source.next_functions[0][0]
    if source is None or source._sequence_nr() not in graph.nodes:
        return None
    given = {name: one for name, one in _kept(source).items() if not _is_result(name)}
    beside = not given and any(edge is None for edge, _ in source.next_functions)
    return Step(source._sequence_nr(), operation_of(source), kind, _spans(given), rows, beside)


def _behind(graph: Graph, number: int) -> set[int]:
    """The nodes that may have brought what is not finite to a node."""
    waiting, reached = [graph.nodes[number]], set()
    while waiting:
        node = waiting.pop()
        if node is None or node._sequence_nr() in reached or node._sequence_nr() not in graph.nodes:
            continue
        kept = _kept(node)
        if any(_is_result(name) and not kind_of(one) for name, one in kept.items()):
            continue
        reached.add(node._sequence_nr())
        finite = {
            2 if (_name(node), name) in _THIRD else int(name in _SECOND)
            for name, one in kept.items()
            if not _is_result(name) and not kind_of(one)
        }
        waiting.extend(edge for place, (edge, _) in enumerate(node.next_functions) if place not in finite)
    return reached


def _made(node: Any, kept: dict[str, torch.Tensor]) -> torch.Tensor | None:
    result = next((one for name, one in kept.items() if _is_result(name)), None)
    if result is not None:
        return result
    name = _name(node)
    if name.startswith(_OF_NONE) and 0 in _size(node):
        return torch.empty(0)
    try:
        return _AGAIN[name](kept) if name in _AGAIN else None
    except KeyError:
        return None


def _kept(node: Any) -> dict[str, torch.Tensor]:
    """The values that a node has kept; nothing where one has been changed since."""
    try:
        return {name: one.detach() for name, one in saved_by(node) if one.dtype in _FLOATING and one.numel()}
    except RuntimeError:
        return {}


def _name(node: Any) -> str:
    name: str = node.name()
    return name.rpartition("Backward")[0] or name


def _is_result(name: str) -> bool:
    return name.startswith(("result", "output"))


def _size(node: Any) -> tuple[int, ...]:
    size = getattr(node, "_saved_self_sym_sizes", None)
    count = getattr(node, "_saved_self_sym_numel", None)
    return (*(size or ()), *(() if count is None else (count,)))


def _spans(tensors: dict[str, torch.Tensor]) -> list[tuple[float, float]]:
    found = [torch.aminmax(one) for one in [*tensors.values()][:2]]
    return [(float(low), float(high)) for low, high in found]


def _rows(tensor: torch.Tensor) -> list[int] | None:
    return rows_not_finite(tensor) if tensor.dim() and tensor.numel() else None
