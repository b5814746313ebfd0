"""Arrays of every shape, dtype, memory layout and kind of values, drawn as a few numbers so that they shrink well."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
REAL = ("bool", *INTEGERS, *FLOATS)
COMPLEX = ("complex64", "complex128")
NUMBERS = (*REAL, *COMPLEX)

# Sizes at which something in the sources changes: runs, pieces, blocks, parts that are looked at, bytes in one go.
LIMITS = (64, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536)
PRIMES = (2, 3, 5, 7, 11, 13, 31, 61, 127, 251, 509, 1021, 4093, 16_381, 16_411, 32_771)
FEW = (*range(10), 15, 16, 17, 30, 50)


def sizes(most: int = 70_000):
    """Numbers of elements: mostly few, else about a limit, or a prime."""
    about = [limit * factor + more for limit in LIMITS for factor in (1, 2, 3) for more in (-1, 0, 1)]
    return st.one_of(
        st.sampled_from(FEW),
        st.integers(0, 70),
        st.sampled_from([size for size in (*about, *PRIMES) if size <= most]),
    )


@st.composite
def shapes(draw, most: int = 70_000, fewest_dims: int = 0, most_dims: int = 5) -> tuple[int, ...]:
    """Shapes of at most so many elements: one size, split over axes, with axes of 1 and sometimes of 0."""
    dims = draw(st.integers(fewest_dims, most_dims))
    if dims == 0:
        return ()
    rest = draw(sizes(most))
    shape = []
    for _ in range(dims - 1):
        axis = draw(st.sampled_from((1, 2, 3, 4, 5, 7, 8, 28, 64)))
        axis = min(axis, max(rest, 1))
        shape.append(axis)
        rest //= axis
    shape.append(rest)
    return tuple(draw(st.permutations(shape))) if dims > 1 else tuple(shape)


KINDS = ("normal", "zeros", "ones", "constant", "small", "integral", "tiny", "huge", "bits", "nan", "inf", "some nan")
KINDS += ("some inf", "both inf", "mostly zero", "near one", "unit", "sorted", "alternating")


def values(kind: str, size: int, dtype: Any, seed: int) -> np.ndarray:
    """Values of one dimension.

    Args:
        kind: of ``KINDS``.
        size: how many.
        dtype: of numbers.
        seed: of the random ones.
    """
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        share = {"zeros": 0.0, "ones": 1.0, "constant": 1.0, "mostly zero": 0.01}.get(kind, 0.5)
        return rng.random(size) < share
    if dtype.kind in "iu":
        return _integers(kind, size, dtype, rng)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        found = np.empty(size, dtype)
        found.real, found.imag = (_floats(kind, size, part, rng) for _ in range(2))
        return found
    return _floats(kind, size, dtype, rng)


def _integers(kind, size, dtype, rng):
    info = np.iinfo(dtype)
    if kind in ("zeros", "ones"):
        return np.full(size, int(kind == "ones"), dtype)
    if kind in ("huge", "bits", "nan", "inf", "some inf"):
        return np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).copy()
    if kind in ("both inf", "tiny"):
        return rng.choice(np.array([info.min, info.max], dtype), size)
    found = rng.integers(max(info.min, -100), min(info.max, 100), size).astype(dtype)
    return np.where(rng.random(size) < 0.9, 0, found).astype(dtype) if kind == "mostly zero" else found


def _floats(kind, size, dtype, rng):
    info = np.finfo(dtype)
    normal = rng.standard_normal(size)
    with np.errstate(all="ignore"):
        found = {
            "zeros": lambda: rng.choice([0.0, -0.0], size),
            "ones": lambda: np.ones(size),
            "constant": lambda: np.full(size, rng.standard_normal() * 10.0 ** rng.integers(-3, 4)),
            "small": lambda: normal * 1e-3,
            "integral": lambda: np.round(normal * 10),
            "tiny": lambda: normal * 4 * float(info.smallest_normal),
            "huge": lambda: np.clip(normal, -1, 1) * float(info.max),
            "near one": lambda: 1 + normal * 1e-4,
            "unit": lambda: rng.random(size),
            "sorted": lambda: np.sort(normal),
            "alternating": lambda: np.resize([1.0, -1.0], size),
            "nan": lambda: np.full(size, np.nan),
            "inf": lambda: np.full(size, np.inf),
            "mostly zero": lambda: np.where(rng.random(size) < 0.95, 0, normal),
        }.get(kind, lambda: normal)()
        found = np.asarray(found).astype(dtype)
    if kind == "bits":
        found = np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).copy()
    share = rng.random() * 0.2
    if kind in ("some nan", "both inf"):
        found[rng.random(size) < share] = np.nan if kind == "some nan" else -np.inf
    if kind in ("some inf", "both inf"):
        found[rng.random(size) < share] = np.inf
    return found


def _expanded(array, rng):
    if not array.ndim or not array.size:
        return array
    return np.broadcast_to(array.take([0], int(rng.integers(array.ndim))), array.shape)


def _padded(array, rng):
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], array.shape[-1] + 3), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide[..., : array.shape[-1]]


def _unaligned(array, rng):
    found = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def _overlapping(array, rng):
    if array.ndim != 1 or array.size < 4:
        return array
    return np.lib.stride_tricks.sliding_window_view(array, 3).reshape(-1, 3)[:, 0]


# How an array lies in memory; what is made may have other values, but the same dtype and number of dimensions.
LAYOUTS = {
    "plain": lambda array, rng: array,
    "fortran": lambda array, rng: np.asfortranarray(array),
    "permuted": lambda array, rng: array.transpose(rng.permutation(array.ndim)),
    "every other": lambda array, rng: array[(slice(None, None, int(rng.integers(2, 4))),) * array.ndim],
    "reversed": lambda array, rng: array[tuple(slice(None, None, int(way)) for way in rng.choice([1, -1], array.ndim))],
    "sliced": lambda array, rng: array[tuple(slice(int(rng.integers(0, 2)), None) for _ in array.shape)],
    "byte order": lambda array, rng: array.astype(array.dtype.newbyteorder(">")),
    "expanded": _expanded,
    "padded": _padded,
    "unaligned": _unaligned,
    "overlapping": _overlapping,
}


class Recipe(NamedTuple):
    """How an array is made; in this form it is printed where a property fails."""

    shape: tuple[int, ...]
    dtype: str
    kind: str
    layout: str
    seed: int

    def make(self) -> np.ndarray:
        """The array."""
        flat = values(self.kind, math.prod(self.shape), self.dtype, self.seed)
        return LAYOUTS[self.layout](flat.reshape(self.shape), np.random.default_rng(self.seed))


@st.composite
def recipes(
    draw, dtypes=NUMBERS, most=70_000, fewest_dims=0, most_dims=5, layouts=tuple(LAYOUTS), kinds=KINDS
) -> Recipe:
    """Recipes of arrays."""
    return Recipe(
        draw(shapes(most, fewest_dims, most_dims)),
        draw(st.sampled_from(dtypes)),
        draw(st.sampled_from(kinds)),
        draw(st.sampled_from(layouts)),
        draw(st.integers(0, 1000)),
    )


def unchanged(array: np.ndarray) -> bytes:
    """What must be the same after the capture has looked at an array."""
    return array.tobytes()
