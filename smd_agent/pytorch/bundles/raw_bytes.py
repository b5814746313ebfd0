"""The bytes of tensors as safetensors names and orders them, and tensors of such bytes."""

from __future__ import annotations

import torch

from smd_agent.formats.safetensors import Placed
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.own_operations import apart, without_gradients

_NAMES = {
    **{"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "complex64": "C64", "bool": "BOOL"},
    **{"int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8"},
    **{"uint16": "U16", "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"},
}
DTYPES: dict[torch.dtype, str] = {getattr(torch, name): known for name, known in _NAMES.items() if hasattr(torch, name)}
_TORCH = {name: dtype for dtype, name in DTYPES.items()}


def can_be_kept(tensor: torch.Tensor) -> bool:
    """True if a tensor has bytes that safetensors has a name for."""
    return tensor.dtype in DTYPES and (has_memory(tensor) or _is_empty(tensor))


def _is_empty(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided and not tensor.numel()


@apart
@without_gradients
def bytes_of(tensor: torch.Tensor) -> memoryview:
    """A copy of a tensor's bytes, in the order of rows."""
    # What NumPy has looked at can never be given another size.
    copy = tensor.detach().resolve_conj().resolve_neg().to("cpu", copy=True).contiguous()
    return copy.reshape(-1).view(torch.uint8).numpy().data


@apart
def tensor_of(content: bytes, placed: Placed) -> torch.Tensor:
    """The tensor at a place of a file; it has memory of its own."""
    dtype = _TORCH[placed.dtype]
    if placed.start == placed.end:
        return torch.empty(placed.shape, dtype=dtype)
    return torch.frombuffer(bytearray(content[placed.start : placed.end]), dtype=dtype).reshape(placed.shape)
