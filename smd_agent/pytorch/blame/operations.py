"""Operations of a forward and a backward pass, and the first of them that makes a value that is not finite.

That is one that makes a NaN out of no NaN. Where it is given an infinity, the operation that has made that one is to
blame; what fills a tensor with infinities, as a mask does, is no maker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from smd_agent.framework.made_values import Made, Place, rows_in_words
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.callers import callers, first_argument
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.tracing import probe
from smd_agent.pytorch.unnoticed import OwnTensorsOnly

_FILLS = {
    "masked_fill",
    "full",
    "full_like",
    "scalar_tensor",
    "fill",
    "fill_",
    "masked_fill_",
    "new_full",
    "lift_fresh",
}
_EMPTY = ("empty", "new_empty")
_FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

current_node: Callable[[], Any] = probe(torch, "_C._current_autograd_node", None)
next_number: Callable[[], int] = probe(torch, "autograd._get_sequence_nr", 0)


class Found(BaseException):
    """There is no need to go on with a backward pass."""


class Operations(OwnTensorsOnly):  # type: ignore[no-untyped-call]
    """Those of a replay.

    Args:
        own: tensors that may be written to.
        layers: the names of modules, by their ids.
        rows: of the batch; 0 where that is not known.
        until: the code of the function that the replay is called from; None where all that is running is the program.
        is_known: whether a file has no code of the program's.

    Attributes:
        nan: the operation that is to blame for the first NaN.
        infinite: the one that is to blame for the last infinity.
    """

    def __init__(
        self,
        own: Iterator[torch.Tensor],
        layers: dict[int, str],
        rows: int,
        until: CodeType | None,
        is_known: Callable[[str], bool],
    ) -> None:
        super().__init__(own)
        self.nan: Made | None = None
        self.infinite: Made | None = None
        self._layers = layers
        self._rows = rows
        self._until = until
        self._is_known = is_known
        # By the number of the graph's node.
        self._places: dict[int, Place] = {}
        self._makers: dict[int, tuple[torch.Tensor, Made]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.nan is not None:
            return self.let_through(func, args, kwargs)
        given = [one for one in tensors_in((args, kwargs)) if _is_floating(one)]
        # It may write to what it is given.
        before = [_not_finite(one) for one in given] if func._schema.is_mutable else None
        spans = [] if before is None else _spans(given)
        place = self.place()
        if place is not None:
            self._places.setdefault(next_number() - 1, place)
        result = self.let_through(func, args, kwargs)
        name = func._schema.name.partition("::")[2]
        if name.startswith(_EMPTY):
            return result
        bad = [one for one in tensors_in(result) if _is_floating(one) and _not_finite(one)]
        if bad:
            kinds = before if before is not None else [_not_finite(one) for one in given]
            made = self._made(f"{func.namespace}.{name}", bad[0], given, spans, place)
            self._judge(name, made, bad, given, kinds, args)
        return result

    def _judge(
        self, name: str, made: Made, bad: list[torch.Tensor], given: list[torch.Tensor], kinds: list[str], args: Any
    ) -> None:
        infinite = [id(one) for one, kind in zip(given, kinds, strict=True) if kind]
        makers = [self._makers[key][1] for key in infinite if key in self._makers]
        if any(_not_finite(one) == "NaN" for one in bad) and "NaN" not in kinds:
            self.nan = makers[0]._replace(ending=self._named(made)) if makers else made
            if made.backward_of:
                self.found_in_backward()
        elif makers:
            self._note(makers[0], bad)
        elif name not in _FILLS and not any(kinds) and not _has_infinity(args):
            self._note(made, bad)

    def found_in_backward(self) -> None:
        """End a backward pass that goes on for nothing.

        Raises:
            Found: always.
        """
        raise Found

    def _note(self, made: Made, bad: list[torch.Tensor]) -> None:
        """An operation has made infinities, or has been given those of another one, which are its."""
        self.infinite = made
        for one in bad:
            self._makers[id(one)] = one, made

    @staticmethod
    def _named(made: Made) -> str:
        behind = f" in {made.backward_of}" if made.backward_of else ""
        return f"{made.operation}{behind}"

    def _made(
        self,
        operation: str,
        bad: torch.Tensor,
        given: list[torch.Tensor],
        spans: list[tuple[float, float]],
        place: Place | None,
    ) -> Made:
        node = None if place is not None else current_node()
        if node is not None:
            place = self._places.get(node._sequence_nr())
        of_batch = self._rows > 1 and bad.dim() and bad.shape[0] == self._rows
        rows = rows_in_words(rows_not_finite(bad), self._rows) if of_batch else ""
        behind = "" if node is None else node.name()
        return Made(operation, behind, _not_finite(bad), spans or _spans(given), rows, place)

    def place(self) -> Place | None:
        """The line of the program's that is running; None in a backward pass that runs none."""
        module = ""
        line: FrameType | None = None
        for frame in callers():
            if frame.f_code is self._until:
                return None if line is None else Place(line.f_code.co_filename, line.f_lineno, module)
            if line is None and not self._is_known(frame.f_code.co_filename):
                line = frame
            if not module and frame.f_code.co_name == "forward":
                module = self._layers.get(id(first_argument(frame)), "")
            if line is not None and module:
                return Place(line.f_code.co_filename, line.f_lineno, module)
        return None if line is None else Place(line.f_code.co_filename, line.f_lineno, module)


def rows_not_finite(tensor: torch.Tensor) -> list[int]:
    """The rows of a tensor, along its first dimension, that have values that are not finite."""
    found = ~torch.isfinite(tensor.detach()).reshape(tensor.shape[0], -1).all(1)
    rows: list[int] = found.nonzero().flatten().tolist()
    return rows


def _is_floating(tensor: Any) -> bool:
    return is_a(tensor, torch.Tensor) and tensor.dtype in _FLOATING and has_memory(tensor)


def _not_finite(tensor: torch.Tensor) -> str:
    """``NaN``, ``inf`` or ``-inf`` where a tensor has such a value, the first that it has of them; else nothing."""
    low, high = _range(tensor)
    if low != low or high != high:
        return "NaN"
    return "inf" if high == float("inf") else "-inf" if low == -float("inf") else ""


def _range(tensor: torch.Tensor) -> tuple[float, float]:
    low, high = torch.aminmax(tensor.detach())
    return float(low), float(high)


def _spans(tensors: list[torch.Tensor]) -> list[tuple[float, float]]:
    return [_range(tensor) for tensor in tensors[:2]]


def _has_infinity(args: Any) -> bool:
    return any(type(one) is float and one - one != 0.0 for one in args)


kind_of = _not_finite
"""The same."""


@apart
def is_bad(tensor: torch.Tensor) -> bool:
    """True if a tensor has values that are not finite."""
    return tensor.is_floating_point() and has_memory(tensor) and bool(kind_of(tensor))
