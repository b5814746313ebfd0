"""Digests, and what is looked at of a large tensor."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.reductions import mixed, with_kernel
from smd_agent.framework import input_digests
from smd_agent.framework import training_facts as facts


def digest(*arrays):
    parts = [(input_digests.words_of(facts.sample(a.reshape(-1))), str(a.dtype), a.shape) for a in arrays]
    return int(input_digests.digest(parts, np)[0])


def by_hand(*arrays):
    """Return the digest, computed with Python's own integers."""
    mask, total = 2**64 - 1, 0
    for number, array in enumerate(arrays):
        part = 0
        for place, word in enumerate(input_digests.words_of(array).tolist(), 1):
            mixed = (word + place) * 0xFF51AFD7ED558CCD & mask
            signed = mixed - 2**64 if mixed >= 2**63 else mixed
            part += (mixed ^ (signed >> 29)) * 0xC4CEB9FE1A85EC53
        total += (part + input_digests._kind(str(array.dtype), array.shape)) * (2 * number + 1)
    total &= mask
    return total - 2**64 if total >= 2**63 else total


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "float32", "int64", "complex128"])
def test_a_digest_is_the_sum_of_mixed_words(dtype):
    arrays = [np.arange(12).reshape(3, 4).astype(dtype), np.ones(5, dtype)]
    assert digest(*arrays) == by_hand(*arrays)


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 20_000])
def test_the_kernel_and_numpy_give_the_same_digest(size):
    words = np.random.default_rng(size).integers(-(2**62), 2**62, size)
    kernel = with_kernel.load()
    assert kernel is not None
    assert kernel.mixed_sum(words) == mixed.mixed_sum(words) == int(mixed.mixed(words, np.arange(1, size + 1)).sum())
    assert kernel.mixed_sum(words[::-1]) == mixed.mixed_sum(words[::-1])


def test_order_shape_and_dtype_tell_arrays_apart():
    a, b = np.arange(6, dtype=np.float32), np.arange(6, 12, dtype=np.float32)
    found = [
        digest(a, b),
        digest(b, a),
        digest(a),
        digest(a.reshape(2, 3), b),
        digest(a.view(np.int32), b),
        digest(a[::-1], b),
    ]
    assert len({*found}) == len(found)


def test_arrays_that_have_swapped_their_shapes_or_dtypes_are_told_apart():
    a = np.arange(6, dtype=np.float32)
    assert digest(a.reshape(2, 3), a.reshape(3, 2)) != digest(a.reshape(3, 2), a.reshape(2, 3))
    assert digest(a, a.view(np.int32)) != digest(a.view(np.int32), a)


def test_small_tensors_are_looked_at_whole_and_large_ones_all_over():
    assert facts.sample(np.arange(facts.LOOKED_AT)).shape == (facts.LOOKED_AT,)
    part = facts.sample(np.arange(1_000_001))
    assert part.shape == (64, 1024)
    assert part[0, 0] == 0
    assert part[-1, 0] == 63 * (1_000_001 // 64)
    assert facts.scale_of(facts.LOOKED_AT // 2) == 1
    assert facts.scale_of(4 * facts.LOOKED_AT) == 2


def test_settings_of_groups_and_pairs():
    groups = [{"lr": 0.1, "betas": (0.9, 0.99), "fused": True}, {"lr": 0.2, "betas": (0.8, 0.9)}]
    assert dict(facts.settings(groups[:1], ("lr", "betas", "fused", "momentum"))) == {
        "lr": 0.1,
        "beta_1": 0.9,
        "beta_2": 0.99,
    }
    assert [name for name, _ in facts.settings(groups, ("lr",))] == ["group_0/lr", "group_1/lr"]
