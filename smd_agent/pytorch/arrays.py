"""Torch tensors as NumPy arrays: shared where that is possible, widened where NumPy has no such type."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.framework.nested_tensors import NOTHING, nested, parts_of
from smd_agent.framework.plain_access import attribute, in_class, is_a

_NAMES = [
    "float16",
    "float32",
    "float64",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "bool",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
]
# NumPy's notation and size of each dtype that both know.
_NUMPY_DTYPES = {
    getattr(torch, name): (np.dtype(name).str, np.dtype(name).itemsize) for name in _NAMES if hasattr(torch, name)
}
_WIDER = {torch.complex32: torch.complex64}
PLAIN_CLASSES = (torch.Tensor, torch.nn.Parameter)
# A subclass may have another one.
_detached = torch.Tensor.detach


def to_array(tensor: torch.Tensor) -> tuple[npt.NDArray[Any], str | None] | None:
    """The tensor's values, and the name of its dtype if they had to be widened.

    A CPU tensor's array shares its memory, so it must be copied or reduced before the program goes on. Sparse tensors
    come out dense, a distributed tensor as this rank's part. None: the tensor holds no values that could be read (a
    ``meta`` tensor, a quantised one, a subclass that gives none away).
    """
    try:
        if type(tensor) in PLAIN_CLASSES and tensor.is_cpu and tensor.layout is torch.strided:
            array = _shared(tensor)
            if array is not None:
                return array, None
        return _read(tensor)
    except (TypeError, RuntimeError):
        # Subclasses may define any operation away; one such tensor must not cost the others.
        return None


def _read(tensor: torch.Tensor) -> tuple[npt.NDArray[Any], str | None] | None:
    # Anything but the local part would need a collective call, which the other ranks do not take part in.
    tensor = _detached(local_of(tensor))
    if tensor.is_meta or tensor.is_quantized:
        return None
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor._is_zerotensor():
        tensor = tensor.clone()
    # To convert what has been freed ends the process.
    if type(tensor) in PLAIN_CLASSES and tensor.numel() and not _is_whole(tensor):
        return None
    note = None
    # First, so that an accelerator needs no memory for what is made of it.
    tensor = tensor.cpu()
    if tensor.dtype not in _NUMPY_DTYPES:
        note = str(tensor.dtype).removeprefix("torch.")
        tensor = tensor.to(_WIDER.get(tensor.dtype, torch.float32))
    tensor = tensor.resolve_conj().resolve_neg()
    # A subclass may have no memory of its own, and only says so when it is asked for an array.
    array = _shared(tensor) if type(tensor) in PLAIN_CLASSES else tensor.numpy()
    return None if array is None else (array, note)


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """This rank's part of a distributed tensor; any other one as it is."""
    if type(tensor) in PLAIN_CLASSES:
        return tensor
    local = attribute(tensor, "_local_tensor")
    return local if is_a(local, torch.Tensor) else tensor


class _Memory:
    """A tensor's memory, for NumPy.

    ``Tensor.numpy`` forbids for good that the program gives the storage another size, and the wrappers that shard
    models do so.
    """

    __slots__ = ("__array_interface__", "tensor")

    def __init__(self, tensor: torch.Tensor, address: int, typestr: str, itemsize: int) -> None:
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "typestr": typestr,
            "shape": tuple(tensor.shape),
            "strides": None if tensor.is_contiguous() else tuple(step * itemsize for step in tensor.stride()),
            "data": (address, False),
        }


def _shared(tensor: torch.Tensor) -> npt.NDArray[Any] | None:
    """An array of a CPU tensor's own memory; None if it is of no dtype of NumPy's, lazily changed, or freed."""
    kind = _NUMPY_DTYPES.get(tensor.dtype)
    if kind is None or tensor.is_neg() or tensor.is_conj():
        return None
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), kind[0])
    if not _is_whole(tensor):
        return None
    # A tensor of lazy zeros has no memory, and one that only stands for another one has none of its own.
    address = tensor.data_ptr()
    return np.asarray(_Memory(tensor, address, *kind)) if address else None


def _is_whole(tensor: torch.Tensor) -> bool:
    """True if the memory of a tensor with elements has all of them: it may have been freed, or cut."""
    if tensor.is_contiguous():
        count = tensor.numel()
    else:
        count = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + count) * tensor.element_size()


def has_memory(tensor: torch.Tensor) -> bool:
    """True if a tensor is a plain, dense one whose elements are there to be read; there are some.

    A quantised one is not: to look at its integers as others ends the process. Nor is a nested one, which has no shape,
    or one of lazy zeros.
    """
    if type(tensor) not in PLAIN_CLASSES or tensor.layout is not torch.strided or tensor.is_meta:
        return False
    if tensor.is_quantized or tensor.is_nested or not tensor.numel() or tensor._is_zerotensor():
        return False
    try:
        return _is_whole(tensor)
    except NotImplementedError:
        # What a function transform, such as vmap, is tracing.
        return False


def in_floats(tensor: torch.Tensor) -> torch.Tensor | None:
    """A floating-point tensor in float32, or itself if it is of float64; None if nothing reads its dtype."""
    try:
        return tensor if tensor.dtype is torch.float64 else tensor.to(torch.float32)
    except NotImplementedError:
        return None


def sent(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the host's on another device, without waiting for that."""
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors of a module's input or output, in order, out of lists, tuples, mappings and dataclasses."""
    return nested(value, torch.Tensor, _parts)


def numbers_in(inputs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of the inputs of a model that have numbers, none of them complex, and can be read."""
    for tensor in tensors_in(inputs):
        if has_memory(tensor) and not tensor.is_complex():
            yield tensor.detach()


def _parts(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind is int or kind is float or kind is str or kind is bool or value is None:
        return NOTHING
    found = parts_of(value)
    if found is NOTHING and in_class(kind, "__dataclass_fields__") is not None:
        return [attribute(value, field.name) for field in dataclasses.fields(kind)]
    return found
