"""Facts of a training computed by NumPy in extended precision, and how far from them the agent's may be."""

from __future__ import annotations

import math

import numpy as np

# Of a sum that is taken in float32, in lanes.
NEAR = 1e-4


def runs_of(flat: np.ndarray, most: int) -> np.ndarray:
    """What is looked at of so many elements: all, or 64 runs that are spread evenly."""
    if flat.size <= most:
        return flat
    length = flat.size // 64
    return np.stack([flat[start * length : start * length + most // 64] for start in range(64)])


def place_looked_at(size: int, seed: int, most: int = 65_536) -> int:
    """The place of some element that is looked at."""
    places = runs_of(np.arange(size), most).reshape(-1)
    return int(places[seed % places.size])


def check_input(found: dict[str, object], array: np.ndarray) -> None:
    """The numbers of a model's input."""
    table = array.ndim == 2 and array.shape[0] > 1 and 1 < array.shape[1] <= 2048
    part = array[:: -(-array.size // 16_384)] if table else runs_of(array.reshape(-1), 16_384)
    numbers = {name: float(value) for name, value in found.items()}
    assert numbers["min"] == part.min() or np.isnan(part).any()
    assert numbers["max"] == part.max() or np.isnan(part).any()
    assert (
        numbers["not_finite"] == np.float64(1 - np.isfinite(part).mean())
        or abs(numbers["not_finite"] - (1 - np.isfinite(part).mean())) < 1e-6
    )
    assert ("largest_scale" in numbers) is table
    if np.isnan(part).any():
        assert all(math.isnan(numbers[name]) for name in ("min", "max", "mean", "std"))
    if not np.isfinite(part).all():
        return
    wide = part.astype(np.longdouble)
    terms = float(np.abs(wide).mean())
    if terms > 1e30:
        # Sums of float32 may overflow: then they are infinite.
        return
    assert abs(numbers["mean"] - float(wide.mean())) <= NEAR * terms + 1e-44
    assert abs(numbers["std"] - float(wide.std())) <= NEAR * float(np.abs(wide).max()) + 1e-22
    if table:
        scales = np.sqrt(np.square(wide).mean(0))
        _check_scale(numbers, "largest", scales, scales.max())
        positive = scales[scales > 1e-18]
        if positive.size == scales.size:
            _check_scale(numbers, "smallest", scales, positive.min())


def _check_scale(numbers: dict[str, float], name: str, scales: np.ndarray, wanted: float) -> None:
    within = NEAR * float(wanted) + 1e-18
    assert abs(numbers[f"{name}_scale"] - float(wanted)) <= within
    assert abs(float(scales[int(numbers[f"{name}_column"])] - wanted)) <= 2 * within


def check_length(part: np.ndarray, found: float) -> None:
    """The l2 of some elements, as float32."""
    with np.errstate(all="ignore"):
        if part.dtype.kind == "c":
            part = np.concatenate([part.real.reshape(-1), part.imag.reshape(-1)])
        wanted = np.sqrt(np.square(part.astype(np.longdouble)).sum())
        _same(found, wanted)


def check_change(before: np.ndarray, after: np.ndarray, size: int, move: float, ratio: float) -> None:
    """An update and its ratio, of what was looked at before and after it."""
    with np.errstate(all="ignore"):
        gone = (after - before).astype(np.longdouble)
        length = np.sqrt(np.square(before.astype(np.longdouble)).sum())
        moved = np.sqrt(np.square(gone).sum())
        scale = math.sqrt(max(size / 65_536, 1.0))
        _same(move, moved * scale)
        # Lengths are of float32, where those of float64 end.
        if max(moved, length) < 3.3e38:
            _same(ratio, (moved > 0) if length == 0 else moved / length)


def _same(found: float, wanted: np.longdouble) -> None:
    """Whether a number that is kept in float32 is the wanted one."""
    if np.isnan(wanted):
        assert math.isnan(found)
    elif wanted > 3.3e38:
        assert found > 3.2e38
    else:
        assert abs(found - float(wanted)) <= NEAR * float(wanted) + 1e-44, (found, wanted)
