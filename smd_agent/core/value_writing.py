"""Values as they go into a step that is saved: their shapes, their reductions, themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.channel_axes import ChannelAxes
from smd_agent.core.distribution import distribution_of, has_distribution, sums_in
from smd_agent.core.names import Ops, reduction_name
from smd_agent.core.ports import Deferred, StepSink
from smd_agent.core.reduction_config import HISTOGRAM_OP
from smd_agent.core.reductions import channel_shares, count_by_size, reduce_batch, reducible

if TYPE_CHECKING:
    from smd_agent.core.save_plan import Group

# The values, and the name of the dtype they had before they were widened.
Captured = tuple[npt.NDArray[Any], "str | None"]
# See ``BaseHook.to_array``.
ToArray = Callable[[Any], "Captured | None"]


def capture(to_array: ToArray, name: str, value: Any) -> Captured | None:
    """A value as an array; None where it has no elements or, after a line, where it is no array."""
    # What is no Deferred may be an object of the program's, which ``isinstance`` would ask for its class.
    captured = to_array(value.read() if issubclass(type(value), Deferred) else value)
    if captured is None:
        guard.say_once(("no array", name), f"{name} cannot be saved: a {type(value).__name__} is no array")
        return None
    return captured if captured[0].size else None


def write_group(
    sink: StepSink,
    names: tuple[str, ...],
    captured: Mapping[int, Captured],
    group: Group,
    axes: ChannelAxes,
) -> None:
    """Write what is wanted of several tensors.

    Args:
        sink: of the step.
        names: the tensors' names.
        captured: the values that there are, by their position.
        group: what is saved of them.
        axes: of the channels of layers' outputs.
    """
    group = group.for_sizes(lambda i: captured[i][0].size if i in captured else 0)
    for i in group.shapes:
        if i in captured:
            array, original_dtype = captured[i]
            sink.add_shape(names[i], names[i], array.shape, original_dtype or _name_of(array.dtype))
    sums = _write_reductions(sink, names, captured, group)
    if group.shares:
        _write_shares(sink, names, captured, group, axes)
    _write_histograms(sink, names, captured, group)
    if group.pictured:
        _write_distributions(sink, names, captured, group, sums)
    for i in group.raw:
        if i in captured:
            write_raw(sink, names[i], captured[i])


def _write_reductions(
    sink: StepSink, names: Sequence[str], captured: Mapping[int, Captured], group: Group
) -> dict[int, list[float] | None]:
    """Write the reductions of all elements; those of them that a distribution has, too."""
    sums: dict[int, list[float] | None] = {}
    for reduced in group.reduced:
        arrays = [captured[i][0] for i in reduced.members if i in captured]
        if len(arrays) == len(reduced.members) and all(reducible(array.dtype, reduced.ops) for array in arrays):
            numbers = reduce_batch(arrays, reduced.ops)
            sink.add_scalars(reduced.tags, numbers.reshape(-1))
            if group.pictured:
                for i, array, row in zip(reduced.members, arrays, numbers.tolist(), strict=True):
                    sums[i] = sums_in(reduced.ops, row, array.size)
        else:
            for i in reduced.members:
                if i in captured and not _is_whole_text(i, captured, group):
                    _reduce_singly(sink, names[i], captured[i][0], reduced.ops)
    return sums


def _write_shares(
    sink: StepSink, names: Sequence[str], captured: Mapping[int, Captured], group: Group, axes: ChannelAxes
) -> None:
    numeric = {i: array for i, (array, _) in captured.items() if array.dtype.kind in "fiubc"}
    for i, axis, kinds, tags in shares_of(names, {i: array.ndim for i, array in numeric.items()}, group, axes):
        sink.add_scalars(tags, channel_shares(numeric[i], axis, kinds))


def _write_histograms(sink: StepSink, names: Sequence[str], captured: Mapping[int, Captured], group: Group) -> None:
    for i in group.histograms:
        if i not in captured or _is_whole_text(i, captured, group):
            continue
        array = captured[i][0]
        if reducible(array.dtype, (HISTOGRAM_OP,)):
            sink.add(reduction_name(*HISTOGRAM_OP, names[i]), count_by_size(array))
        else:
            _tell_of_missing(names[i], array)


def _write_distributions(
    sink: StepSink,
    names: Sequence[str],
    captured: Mapping[int, Captured],
    group: Group,
    sums: Mapping[int, list[float] | None],
) -> None:
    for i in group.pictured:
        if i in captured and has_distribution(captured[i][0]):
            sink.add_distribution(names[i], distribution_of(captured[i][0], sums.get(i)))


def shares_of(
    names: Sequence[str], dimensions: Mapping[int, int], group: Group, axes: ChannelAxes
) -> Iterator[tuple[int, int, tuple[str, ...], tuple[str, ...]]]:
    """Of which tensors shares of the channels are saved: position, axis of the channels, which shares, stored names.

    ``dimensions`` has the numbers of dimensions by position, of tensors that have such shares.
    """
    for part in group.shares:
        kinds, width = tuple(name for name, _ in part.ops), len(part.ops)
        for n, i in enumerate(part.members):
            axis = axes.of(names[i], dimensions[i]) if i in dimensions else None
            if axis is not None:
                yield i, axis, kinds, part.tags[n * width : (n + 1) * width]
            elif i not in group.saved_otherwise:
                line = f"{names[i]} is not saved: only outputs of layers whose channels are known have {kinds[0]}"
                guard.say_once(("no channels", names[i]), line)


# NumPy makes a dtype's name anew each time.
@functools.lru_cache(maxsize=64)
def _name_of(dtype: np.dtype[Any]) -> str:
    name: str = dtype.name
    return name


def write_raw(sink: StepSink, name: str, found: Captured) -> None:
    """Write a tensor's values; one that the format has no place for is reported once."""
    array, original_dtype = found
    if array.dtype.kind == "U":
        sink.add_text(name, array.reshape(-1).tolist())
        return
    try:
        sink.add(name, array, original_dtype)
    except (TypeError, ValueError) as error:
        guard.say_once(("not stored", name), f"{name} cannot be saved: {error}")


def _reduce_singly(sink: StepSink, name: str, array: npt.NDArray[Any], ops: Ops) -> None:
    defined = tuple(op for op in ops if reducible(array.dtype, (op,)))
    if len(defined) < len(ops):
        _tell_of_missing(name, array)
    if defined:
        tags = tuple(reduction_name(*op, name) for op in defined)
        sink.add_scalars(tags, reduce_batch([array], defined).reshape(-1))


def _is_whole_text(i: int, captured: Mapping[int, Captured], group: Group) -> bool:
    """True if a tensor is text that is saved as it is: nobody misses reductions of it."""
    return captured[i][0].dtype.kind == "U" and i in group.raw


def _tell_of_missing(name: str, array: npt.NDArray[Any]) -> None:
    line = f"{name} has values of type {array.dtype}, for which not all reductions exist"
    guard.say_once(("no reduction", name), line)
