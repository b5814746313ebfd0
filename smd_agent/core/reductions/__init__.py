"""The summaries saved beside or instead of a tensor: one definition for every framework, stored or computed on reading.

What each is stands in ``formulas``.

How exact they are, against the same in float64 over the whole array: min, max, median, percentiles and counts are
equal; sum, mean, l1 and l2 are within ``BOUND`` of what the absolute values give; variance and std are within
``SPREAD_BOUND`` of themselves, where a standard deviation below 1e-12 of the largest element is rounding. A product is
float64's in memory order: where a part of it overflows or underflows, so may the whole. float64 values whose sum or
squares overflow give Inf or NaN, and squares of those below 1e-154 may count as 0.

The sums are computed by a compiled kernel where the package was installed with one (``with_kernel``), else by NumPy
(``with_numpy``); both keep what is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.names import Op, Ops
from smd_agent.core.reductions import channels, histogram, mixed, with_kernel, with_numpy
from smd_agent.core.reductions.formulas import COUNTED, FORMULAS, NOTHING, QUANTILES, Need, Sums, need_of
from smd_agent.core.reductions.quantile import between, quantile

# What exists for complex values too.
OF_SIZES = ("l1", "l2", *COUNTED)
BOUND = 1e-6
SPREAD_BOUND = 1e-5

Array = npt.NDArray[Any]

_kernel = with_kernel.load()


def has_kernel() -> bool:
    """True if reductions are computed by the compiled kernel."""
    return _kernel is not None


def use_kernel(wanted: bool) -> bool:
    """Use the compiled kernel, or NumPy alone; return whether the kernel is used now, which takes there to be one."""
    global _kernel
    _kernel = with_kernel.load() if wanted else None
    return has_kernel()


def mixed_sum(words: npt.NDArray[np.int64]) -> int:
    """A number that tells apart words of one dimension; see ``mixed``."""
    return mixed.mixed_sum(words) if _kernel is None else _kernel.mixed_sum(words)


def reducible(dtype: np.dtype[Any], ops: Iterable[Op]) -> bool:
    """True if all these ops exist for values of this dtype."""
    return dtype.kind in "fiub" or (dtype.kind == "c" and all(absolute or name in OF_SIZES for name, absolute in ops))


def reduce_one(array: Array, name: str, absolute: bool = False) -> float:
    """One reduction of one array.

    Raises:
        TypeError: the array's dtype has no such reduction (text, complex without ``abs``).
    """
    return float(reduce_batch([array], [(name, absolute)])[0, 0])


def reduce_batch(arrays: Sequence[Array], ops: Sequence[Op]) -> npt.NDArray[np.float64]:
    """Every op of every array.

    Args:
        arrays: real, integer, bool or complex arrays of any shape.
        ops: ``(name, absolute)`` pairs.

    Returns:
        float64 array of shape ``(len(arrays), len(ops))``.

    Raises:
        TypeError: a dtype has no such reduction, or there is no such reduction at all.
    """
    ops = tuple(ops)
    unknown = [name for name, absolute in ops if (name, absolute) not in FORMULAS and name not in QUANTILES]
    if unknown:
        raise TypeError(f"there is no reduction called {unknown[0]!r}")
    need = need_of(ops)
    with np.errstate(all="ignore"):
        flat = [_flatten(array, ops) for array in arrays]
        if len(flat) == 1:
            return np.array([_reduced(flat, ops, _sums_of_one(flat[0], need))], np.float64)
        result = np.empty((len(flat), len(ops)), np.float64)
        for j, values in enumerate(_reduced(flat, ops, _sums_of_all(flat, need))):
            result[:, j] = values
    return result


def reduce_rows(matrix: Array, ops: Sequence[Op]) -> npt.NDArray[np.float64]:
    """The same for the rows of a matrix of real numbers, integers or bools, which is dense and not empty.

    Returns:
        float64 array of shape ``(len(matrix), len(ops))``.

    Raises:
        TypeError: as `reduce_batch`.
    """
    ops = tuple(ops)
    need = need_of(ops)
    if _kernel is None or need.product or any(op not in FORMULAS for op in ops):
        return reduce_batch([*matrix], ops)
    result = np.empty((len(matrix), len(ops)), np.float64)
    with np.errstate(all="ignore"):
        sums = _kernel.sum_rows(matrix, need)
        for j, op in enumerate(ops):
            result[:, j] = FORMULAS[op](sums)
    return result


def count_by_size(array: Array, fine: bool = False) -> npt.NDArray[np.int64]:
    """The elements of one real array counted by sign and power of two, as ``histogram`` describes it.

    ``fine`` counts them by eighths of powers of two, for pictures.

    Raises:
        TypeError: the array's dtype has no such histogram (text, complex).
    """
    with np.errstate(all="ignore"):
        return (_kernel or histogram).counts(_flatten(array, (("histogram", False),)), fine)


def channel_shares(array: Array, axis: int, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Shares of the channels of an array, as ``channels`` describes them, of shape ``(len(names),)``.

    Args:
        array: numbers, not empty, of two dimensions or more.
        axis: along which its channels are.
        names: of ``CHANNEL_SHARES``.
    """
    axis %= array.ndim
    count = array.shape[axis]
    wanted = channels.DEAD * ("dead_share" in names) + channels.SATURATED * ("saturated_share" in names)
    arguments = array, axis, wanted, array.size // count // channels.EXCEPTION
    found = None if _kernel is None else _kernel.channel_counts(*arguments)
    dead, saturated = channels.channel_counts(*arguments) if found is None else found
    return np.array([(dead if name == "dead_share" else saturated) / count for name in names], np.float64)


def _reduced(flat: Sequence[Array], ops: Ops, sums: Sums) -> list[Any]:
    """For each op a float where there is one tensor, else an array."""
    return [FORMULAS[op](sums) if op in FORMULAS else _quantiles(flat, *op) for op in ops]


def _quantiles(flat: Sequence[Array], name: str, absolute: bool) -> Any:
    picked = between if _kernel is None else _kernel.between
    found = [quantile(values, QUANTILES[name], absolute, picked) for values in flat]
    return found[0] if len(found) == 1 else np.array(found)


def _sums_of_one(values: Array, need: Need) -> Sums:
    sums = NOTHING if not need.anything else (_kernel or with_numpy).sum_one(values, need)
    return sums._replace(product=_product(values)) if need.product else sums


def _sums_of_all(flat: Sequence[Array], need: Need) -> Sums:
    sums = NOTHING if not need.anything else (_kernel or with_numpy).sum_all(flat, need)
    return sums._replace(product=np.array([_product(values) for values in flat])) if need.product else sums


def _product(values: Array) -> float:
    return float(np.multiply.reduce(values, dtype=np.float64))


def _flatten(array: Array, ops: Ops) -> Array:
    if not reducible(array.dtype, ops):
        raise TypeError(f"not all of {', '.join(name for name, _ in ops)} exist for values of type {array.dtype}")
    if array.dtype.kind == "c":
        # In float32 the size of what both parts fit may overflow.
        array = np.absolute(array, signature="D->d")
    if array.flags.c_contiguous:
        return array.reshape(-1)
    # The order of the elements does not matter here, so a dense array in another memory order is read in place.
    dense: Array = array.transpose(np.argsort([-abs(stride) for stride in array.strides], kind="stable"))
    return dense.reshape(-1)
