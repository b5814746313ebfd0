"""Tensors of PyTorch of every shape, dtype, form and kind of values, with what they hold as NumPy arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from properties.strategies import COMPLEX, FLOATS, KINDS, shapes, values

_SMALL_FLOATS = [
    name for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz") if hasattr(torch, name)
]
_UNSIGNED = [name for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)]
WHOLE = ("bool", "int8", "uint8", "int16", "int32", "int64")
FLOATING = (*FLOATS, "bfloat16", *_SMALL_FLOATS)
DTYPES = (*WHOLE, *_UNSIGNED, *FLOATING, *COMPLEX, "complex32")
# In NumPy, of what it has no such type for.
_LIKE = {"bfloat16": "float32", "complex32": "complex64", **dict.fromkeys(_SMALL_FLOATS, "float32")}


class Sub(torch.Tensor):
    """A subclass that does nothing of its own."""


class Wrapped(torch.Tensor):
    """A subclass without memory of its own, and with nothing that may be done with it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("nothing may be done with it")


def plain(shape, dtype, kind, seed):
    """A contiguous tensor."""
    array = values(kind, math.prod(shape), _LIKE.get(dtype, dtype), seed).reshape(shape)
    with np.errstate(all="ignore"):
        return torch.from_numpy(array.copy()).to(getattr(torch, dtype))


def _inference(tensor, rng):
    with torch.inference_mode():
        return tensor.clone()


def _dense_floats(tensor):
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.to(torch.float32)


def _sparse(tensor, rng):
    tensor = _dense_floats(tensor)
    found = tensor.to_sparse()
    return torch.sparse_coo_tensor(
        torch.cat([found.indices()] * 2, 1), torch.cat([found.values()] * 2), tensor.shape, check_invariants=False
    )


def _of_two(make):
    """A form for tensors of two dimensions; of others, the one of a matrix."""
    return lambda tensor, rng: make(
        _dense_floats(tensor).reshape(-1, 1) if tensor.dim() != 2 else _dense_floats(tensor)
    )


def _expanded(tensor, rng):
    return tensor.reshape(-1)[:1].expand(tensor.numel()) if tensor.numel() else tensor


def _overlapping(tensor, rng):
    flat = tensor.reshape(-1)
    return flat.as_strided((flat.numel() // 2, 3), (1, 1)) if flat.numel() > 5 else tensor


def _grown(tensor, rng):
    wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] + 3)) if tensor.dim() else tensor
    if tensor.dim():
        wide[..., 2:-1] = tensor
        return wide[..., 2:-1]
    return tensor


def _conjugated(tensor, rng):
    if tensor.dtype in (torch.float16, torch.float32, torch.float64):
        return torch._neg_view(tensor)
    return tensor.conj() if tensor.is_complex() else tensor


def _imaginary(tensor, rng):
    return tensor.conj().imag if tensor.is_complex() and tensor.dtype != torch.complex32 else tensor


def _freed(tensor, rng):
    found = tensor.clone()
    found.untyped_storage().resize_(int(rng.integers(0, 2)) * (found.untyped_storage().nbytes() // 2))
    return found


def _leaf(tensor, rng):
    return tensor.requires_grad_() if tensor.is_floating_point() or tensor.is_complex() else tensor


def _computed(tensor, rng):
    if tensor.dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
        return tensor
    return tensor.requires_grad_().view_as(tensor) * 1


# Each of these has the values that ``numbers_in`` gives.
READABLE = {
    "plain": lambda tensor, rng: tensor,
    "leaf": _leaf,
    "computed": _computed,
    "parameter": lambda tensor, rng: torch.nn.Parameter(tensor, tensor.is_floating_point()),
    "transposed": lambda tensor, rng: (
        tensor.permute(*rng.permutation(tensor.dim()).tolist()) if tensor.dim() else tensor
    ),
    "every other": lambda tensor, rng: tensor[(slice(None, None, 2),) * tensor.dim()],
    "grown": _grown,
    "expanded": _expanded,
    "overlapping": _overlapping,
    "conjugated": _conjugated,
    "imaginary": _imaginary,
    "inference": _inference,
    "diagonal": lambda tensor, rng: tensor.diagonal() if tensor.dim() == 2 else tensor,
}
# What is read of these is made dense; nothing else looks at them.
SPARSE = {
    "sparse": _sparse,
    "csr": _of_two(lambda tensor: tensor.to_sparse_csr()),
    "csc": _of_two(lambda tensor: tensor.to_sparse_csc()),
}
# Of a class of its own, or without memory: nothing else looks at them, either.
OWN = {
    "subclass": lambda tensor, rng: tensor.as_subclass(Sub),
    "lazy zeros": lambda tensor, rng: torch._efficientzerotensor(tuple(tensor.shape), dtype=tensor.dtype),
}
# Nothing is read of these.
UNREADABLE = {
    "meta": lambda tensor, rng: tensor.to("meta"),
    "freed": _freed,
    "wrapped": lambda tensor, rng: Wrapped(tensor),
    "nested": lambda tensor, rng: torch.nested.nested_tensor([_dense_floats(tensor).reshape(-1, 1), torch.ones(2, 1)]),
    "quantised": lambda tensor, rng: torch.quantize_per_tensor(tensor.to(torch.float32), 0.1, 2, torch.quint8),
    "quantised by channel": lambda tensor, rng: torch.quantize_per_channel(
        torch.ones(2, 3), torch.ones(3), torch.zeros(3), 1, torch.qint8
    ),
}
FORMS: dict[str, Any] = {**READABLE, **SPARSE, **OWN, **UNREADABLE}


class Tensor(NamedTuple):
    """How a tensor is made."""

    shape: tuple[int, ...]
    dtype: str
    kind: str
    form: str
    seed: int

    def make(self) -> torch.Tensor:
        """The tensor."""
        tensor = plain(self.shape, self.dtype, self.kind, self.seed)
        return FORMS[self.form](tensor, np.random.default_rng(self.seed))

    @property
    def has_memory(self) -> bool:
        """Whether its elements lie in memory one can look at."""
        return self.form in READABLE


@st.composite
def tensors(draw, forms=tuple(FORMS), dtypes=DTYPES, kinds=KINDS, most=70_000, **dims) -> Tensor:
    """How tensors are made."""
    return Tensor(
        draw(shapes(most, **dims)),
        draw(st.sampled_from(dtypes)),
        draw(st.sampled_from(kinds)),
        draw(st.sampled_from(forms)),
        draw(st.integers(0, 1000)),
    )


def numbers_in(tensor: torch.Tensor) -> np.ndarray:
    """The elements in the narrowest type of NumPy's that holds them all, taken by Python's own indexing of a copy."""
    tensor = tensor.detach()
    if type(tensor) is not torch.Tensor:
        tensor = tensor.as_subclass(torch.Tensor)
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.clone().resolve_conj().resolve_neg()
    dtype = str(tensor.dtype).removeprefix("torch.")
    wide = getattr(torch, _LIKE.get(dtype, dtype))
    with torch.inference_mode(tensor.is_inference()):
        return tensor.to(wide).clone().contiguous().numpy()


def state_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What must be the same after the capture has looked at a tensor."""
    if not isinstance(tensor, torch.Tensor) or type(tensor) is Wrapped or tensor.is_meta:
        return ()
    version = None if tensor.is_inference() else tensor._version
    told = (version, tensor.requires_grad, tensor.grad, tensor.grad_fn, tensor.is_leaf, tensor.dtype, tensor.layout)
    if tensor.is_quantized or tensor.is_nested:
        return told
    if tensor.layout is not torch.strided or tensor._is_zerotensor():
        return (*told, tuple(tensor.shape))
    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return (*told, tuple(tensor.shape), tensor.stride(), memory.cpu().numpy().tobytes())
