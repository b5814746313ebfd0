"""Counts of images whose targets fit flipped, of any shape, dtype and stride, with NumPy and with PyTorch."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smd_agent.framework.flipped_targets import Images

SIZES = st.sampled_from([(3, 16, 16), (2, 17, 40), (5, 33, 20), (1, 20, 20), (4, 8, 30), (0, 16, 16), (18, 65, 16)])
DTYPES = ("float32", "float64", "float16", "uint8", "int64", "bool")
NAMES = {"images", "fitting", "flipped", "by_chance"}


def drawn(rng, shape, dtype):
    values = rng.integers(0, 3, shape) if dtype in ("uint8", "int64", "bool") else rng.standard_normal(shape)
    return values.astype(dtype)


def as_floats(part):
    return part.astype(np.float32)


@settings(max_examples=150)
@given(SIZES, st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_numpy_and_pytorch_count_the_same(size, of_images, of_targets, channels, outputs, is_turned):
    rng = np.random.default_rng(channels + 5 * outputs)
    count, height, width = size
    images = drawn(rng, (count, channels, height, width) if channels else size, of_images)
    targets = drawn(rng, (count, outputs, height, width) if outputs else size, of_targets)
    if is_turned:
        images, targets = (np.moveaxis(one, 1, -1) if one.ndim == 4 else one for one in (images, targets))
    before = images.copy(), targets.copy()
    own, theirs = Images(as_floats), Images(lambda part: part.to(torch.float32, copy=True), torch)
    own.take([np.zeros(3), images])
    theirs.take([torch.zeros(3), torch.from_numpy(images)])
    found = {name: float(number) for name, number in own.compared(targets).items()}
    with torch.no_grad():
        other = {name: float(number) for name, number in theirs.compared(torch.from_numpy(targets)).items()}
    assert found.keys() == other.keys()
    assert found.keys() in (set(), NAMES)
    # Sums of another order may fall on the other side of a limit.
    assert all(abs(found[name] - other[name]) <= 1 for name in found)
    if found:
        assert found["images"] == min(count, 16)
        assert found["fitting"] + found["flipped"] <= found["images"]
    assert all((now == then).all() for now, then in zip((images, targets), before, strict=True))
