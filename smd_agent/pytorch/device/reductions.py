"""Reductions of tensors that live on an accelerator: all of them at once, and one copy to the host, not waited for.

The tensors of one device and dtype are laid end to end as rows of ``WIDTH`` elements, in batches of bounded memory. A
few operations on the rows leave eleven float64 sums of each; these go to the host as one array, where they are merged
tensor by tensor. The operations are queued where the training queues its own, so they see the values as they are at
that point; the copy runs on a stream of its own into pinned memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.core.names import Ops
from smd_agent.core.reductions.formulas import FORMULAS, QUANTILES, Sums
from smd_agent.pytorch.arrays import sent
from smd_agent.pytorch.device import free_memory, quantiles
from smd_agent.pytorch.own_operations import without_gradients

WIDTH = 4096
_ROW_FIELDS = (
    *("low", "high", "total", "squares", "spread", "absolute", "abs_spread", "abs_low"),
    *("zeros", "nans", "infs"),
)
_WIDENED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)

Array = npt.NDArray[Any]
Buffers = dict[tuple[torch.dtype, int], list[torch.Tensor]]


def reducible_on_device(tensor: torch.Tensor, ops: Ops) -> bool:
    """True if ``DeviceReductions`` knows this tensor's dtype and layout, and all of the ops."""
    small = tensor.numel() <= free_memory.elements(tensor.device)
    return known_on_device(tensor) and all(
        small if op[0] in QUANTILES else op in FORMULAS and op[0] != "prod" for op in ops
    )


def known_on_device(tensor: torch.Tensor) -> bool:
    """True if a tensor is of a dtype and a layout that can be reduced where it is."""
    return (tensor.dtype in _WIDENED or tensor.dtype in _INTEGERS) and tensor.layout is torch.strided


class DeviceReductions:
    """The reductions of several tensors, on their way to the host.

    Args:
        tensors: on one device, each ``reducible_on_device``; may be overwritten afterwards.
        ops: ``(name, absolute)`` pairs.
    """

    @without_gradients
    def __init__(self, tensors: Sequence[torch.Tensor], ops: Ops) -> None:
        self._ops = ops
        self._sizes = [tensor.numel() for tensor in tensors]
        self._order: list[int] = []
        parts = []
        for members in _batches(tensors):
            self._order += members
            parts.append(_row_sums([tensors[i].detach().reshape(-1) for i in members]))
        rows = torch.cat(parts, 1) if parts else torch.empty((len(_ROW_FIELDS), 0), dtype=torch.float64)
        self._quantiles = [op for op in ops if op[0] in QUANTILES]
        self._ordered = [i for i, size in enumerate(self._sizes) if size and self._quantiles]
        elements = [quantiles.elements_for(tensors[i], self._quantiles) for i in self._ordered]
        self._elements = HostCopy(torch.stack(elements)) if elements else None
        self._copy = HostCopy(rows)

    def ready(self) -> bool:
        """True if ``result`` would not wait."""
        return self._copy.ready() and (self._elements is None or self._elements.ready())

    def result(self) -> npt.NDArray[np.float64]:
        """Every op of every tensor, of shape ``(len(tensors), len(ops))``; waits for the copy."""
        rows = dict(zip(_ROW_FIELDS, self._copy.array(), strict=True))
        result = np.empty((len(self._sizes), len(self._ops)))
        with np.errstate(all="ignore"):
            sums = _merged(rows, [self._sizes[i] for i in self._order])
            for j, op in enumerate(self._ops):
                result[self._order, j] = math.nan if op[0] in QUANTILES else FORMULAS[op](sums)
        places = [self._ops.index(op) for op in self._quantiles]
        found = () if self._elements is None else self._elements.array()
        for i, elements in zip(self._ordered, found, strict=True):
            result[i, places] = quantiles.quantiles_from(elements, self._sizes[i], self._quantiles)
        return result


class HostCopy:
    """A copy of a tensor in the host's memory, made without anybody waiting for it.

    On an accelerator it runs on a side stream, once what is queued so far has run. A CPU tensor is there at once.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._host = tensor
        self._event: Any = None
        if tensor.device.type == "cpu":
            return
        module = getattr(torch, tensor.device.type)
        side = _side_stream(tensor.device)
        side.wait_stream(module.current_stream(tensor.device))
        with module.stream(side):
            self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._event = module.Event()
            self._event.record(side)
        # Its memory must not be given to another tensor of the training before the copy has run.
        tensor.record_stream(side)

    def ready(self) -> bool:
        """True if the copy has arrived."""
        return self._event is None or bool(self._event.query())

    def array(self) -> Array:
        """The values; waits for this copy, and for nothing that was queued after it."""
        if self._event is not None:
            self._event.synchronize()
        return self._host.numpy()


@functools.lru_cache(maxsize=64)
def _side_stream(device: torch.device) -> Any:
    return getattr(torch, device.type).Stream(device)


class Snapshot:
    """The values of one tensor, copied to the host in their turn among what the training has queued.

    Args:
        tensor: strided, on any device; may be overwritten afterwards.
        buffers: memory to use again, by dtype and number of elements.
    """

    def __init__(self, tensor: torch.Tensor, buffers: Buffers) -> None:
        self._shape, self._key = tensor.shape, (tensor.dtype, tensor.numel())
        self._buffers = buffers
        self._event: Any = None
        on_device = tensor.device.type != "cpu"
        free = buffers.setdefault(self._key, [])
        self._host = free.pop() if free else torch.empty(tensor.numel(), dtype=tensor.dtype, pin_memory=on_device)
        self._host.view(tensor.shape).copy_(tensor.detach(), non_blocking=True)
        if on_device:
            module = getattr(torch, tensor.device.type)
            self._event = module.Event()
            self._event.record(module.current_stream(tensor.device))

    def ready(self) -> bool:
        """True if the values have arrived."""
        return self._event is None or bool(self._event.query())

    def read(self) -> torch.Tensor:
        """The values, on the host, until ``free`` is called; waits for them."""
        if self._event is not None:
            self._event.synchronize()
        return self._host.view(self._shape)

    def free(self) -> None:
        """Let another snapshot have the memory."""
        self._buffers[self._key].append(self._host)


def _batches(tensors: Sequence[torch.Tensor]) -> Iterator[list[int]]:
    """Positions of tensors of one dtype each that fit into a batch; a larger tensor has one for itself."""
    by_dtype: dict[torch.dtype, list[int]] = {}
    for i, tensor in enumerate(tensors):
        by_dtype.setdefault(tensor.dtype, []).append(i)
    for members in by_dtype.values():
        batch: list[int] = []
        filled = 0
        for i in members:
            if batch and filled + tensors[i].numel() > free_memory.elements(tensors[i].device):
                yield batch
                batch, filled = [], 0
            batch.append(i)
            filled += tensors[i].numel()
        yield batch


def _row_sums(flat: Sequence[torch.Tensor]) -> torch.Tensor:
    """The fields of each row of each tensor, of shape ``(len(_ROW_FIELDS), rows)``, float64."""
    device, dtype = flat[0].device, flat[0].dtype
    filler = torch.zeros(WIDTH, dtype=dtype, device=device)
    rest = flat[0].numel() % WIDTH
    most = free_memory.elements(device)
    if len(flat) == 1 and flat[0].numel() > most:
        # Read in place, but for its last row.
        whole = flat[0][: flat[0].numel() - rest].view(-1, WIDTH)
        blocks = list(torch.split(whole, max(most // WIDTH, 1)))
        if rest:
            blocks.append(torch.cat([flat[0][-rest:], filler[rest:]])[None])
    else:
        padded = [part for values in flat for part in (values, filler[: -values.numel() % WIDTH])]
        blocks = [torch.cat(padded).view(-1, WIDTH)]
    counts = torch.split(_counts(tuple(values.numel() for values in flat), device), [len(block) for block in blocks])
    return torch.cat([_fields(block, count) for block, count in zip(blocks, counts, strict=True)], 1)


def _fields(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    valid = torch.arange(WIDTH, device=rows.device) < counts[:, None]
    wide = rows.to(torch.float64)
    sizes = wide.abs()
    total, absolute = wide.sum(1), sizes.sum(1)
    gaps = (wide - (total / counts)[:, None]).mul_(valid)
    abs_gaps = (sizes - (absolute / counts)[:, None]).mul_(valid)
    return torch.stack(
        [
            wide.masked_fill(~valid, math.inf).amin(1),
            wide.masked_fill(~valid, -math.inf).amax(1),
            total,
            wide.square().sum(1),
            gaps.square_().sum(1),
            absolute,
            abs_gaps.square_().sum(1),
            sizes.masked_fill(~valid, math.inf).amin(1),
            wide.eq(0.0).logical_and_(valid).sum(1, dtype=torch.float64),
            wide.isnan().sum(1, dtype=torch.float64),
            sizes.eq(math.inf).sum(1, dtype=torch.float64),
        ]
    )


@functools.lru_cache(maxsize=256)
def _counts(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Number of elements of each row that belong to its tensor, float64; kept on the device from step to step."""
    counts = [np.empty(0), *(np.full(-(-size // WIDTH), WIDTH, np.float64) for size in sizes)]
    for row_counts, size in zip(counts[1:], sizes, strict=True):
        if size % WIDTH:
            row_counts[-1] = size % WIDTH
    return sent(torch.from_numpy(np.concatenate(counts)), device)


def _merged(rows: dict[str, Array], sizes: Sequence[int]) -> Sums:
    """The sums of each tensor out of those of its rows."""
    n = np.array(sizes, np.float64)
    lengths = np.array([-(-size // WIDTH) for size in sizes], np.int64)
    filled = np.flatnonzero(lengths)
    starts = (np.cumsum(lengths) - lengths)[filled]
    counts = _counts(tuple(sizes), torch.device("cpu")).numpy()

    def over_rows(function: np.ufunc, values: Array, empty: float) -> Array:
        result = np.full(len(sizes), empty)
        if filled.size:
            result[filled] = function.reduceat(values, starts)
        return result

    def spread(name: str, total: str, sums: Array) -> Array:
        # Chan's formula for many parts at once: what lies within the rows, and between their means and the whole's.
        means = np.repeat(sums / n, lengths)
        return over_rows(np.add, rows[name] + counts * (rows[total] / counts - means) ** 2, 0.0)

    total, absolute = (over_rows(np.add, rows[name], 0.0) for name in ("total", "absolute"))
    low = over_rows(np.minimum, rows["low"], math.nan)
    high = over_rows(np.maximum, rows["high"], math.nan)
    return Sums(
        np.where(n == 0, math.nan, n),
        low,
        high,
        total,
        over_rows(np.add, rows["squares"], 0.0),
        spread("spread", "total", total),
        absolute,
        spread("abs_spread", "absolute", absolute),
        over_rows(np.minimum, rows["abs_low"], math.nan),
        np.maximum(np.abs(low), np.abs(high)),
        *(over_rows(np.add, rows[name], 0.0) for name in ("zeros", "nans", "infs")),
    )
