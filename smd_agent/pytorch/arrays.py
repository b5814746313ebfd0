"""Torch tensors as NumPy arrays: shared where that is possible, widened where NumPy has no such type."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_NUMPY_DTYPES = {
    torch.float16,
    torch.float32,
    torch.float64,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
    *(getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)),
}
_WIDER = {torch.complex32: torch.complex64}
PLAIN_CLASSES = (torch.Tensor, torch.nn.Parameter)
_DEEPEST = 8


def to_array(tensor: torch.Tensor) -> tuple[npt.NDArray[Any], str | None] | None:
    """The tensor's values, and the name of its dtype if they had to be widened.

    A CPU tensor's array shares its memory, so it must be copied or reduced before the program goes on. Sparse tensors
    come out dense, a distributed tensor as this rank's part. None: the tensor holds no values that could be read (a
    ``meta`` tensor, a quantised one, a subclass that gives none away).
    """
    if type(tensor) in PLAIN_CLASSES:
        try:
            return tensor.detach().numpy(), None
        except (TypeError, RuntimeError):
            # Another device, layout or dtype than NumPy's: the long way tells which.
            pass
    try:
        return _read(tensor)
    except (TypeError, RuntimeError):
        # Subclasses may define any operation away; one such tensor must not cost the others.
        return None


def _read(tensor: torch.Tensor) -> tuple[npt.NDArray[Any], str | None] | None:
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        # Anything but the local part would need a collective call, which the other ranks do not take part in.
        tensor = tensor.to_local()
    if tensor.is_meta or tensor.is_quantized:
        return None
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    note = None
    if tensor.dtype not in _NUMPY_DTYPES:
        note = str(tensor.dtype).removeprefix("torch.")
        tensor = tensor.to(_WIDER.get(tensor.dtype, torch.float32))
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    return np.asarray(tensor.resolve_conj().resolve_neg().numpy()), note


def tensors_in(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """The tensors of a module's input or output, in order, out of lists, tuples, mappings and dataclasses."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < _DEEPEST:
        for part in _parts(value):
            yield from tensors_in(part, depth + 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield getattr(value, field.name, None)
