"""Tensors that have no values to be read, or whose values lie in no memory of their own."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from smd_agent.framework.weight_changes import Moved
from smd_agent.pytorch.arrays import has_memory, to_array
from smd_agent.pytorch.capture.fact_adapters import Weights, digest_of
from smd_agent.pytorch.capture.l2_norms import length_of


@pytest.mark.parametrize("left", [0, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_memory_that_was_freed_or_cut(dtype, left):
    # As wrappers that shard models free it, those of mixed precision too.
    tensor = torch.ones(64, dtype=dtype)
    parts = (tensor, tensor[1:], tensor[::2], tensor.reshape(8, 8).t())
    tensor.untyped_storage().resize_(left)
    for one in parts:
        assert to_array(one) is None
        assert not has_memory(one)
        assert digest_of(one) is None
        assert Weights().sample(one) is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantised_and_nested_tensors_have_no_digest():
    quantised = torch.quantize_per_tensor(torch.randn(30), 0.1, 0, torch.quint8)
    nested = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)])
    assert to_array(quantised) is to_array(nested) is None
    assert digest_of([quantised, nested]) is None
    x = torch.arange(5)
    assert int(digest_of([quantised, x])) == int(digest_of([nested, x])) == int(digest_of(x))


def test_lazy_zeros_are_zeros():
    array, note = to_array(torch._efficientzerotensor(5))
    assert (array.tolist(), note) == ([0.0] * 5, None)
    assert digest_of(torch._efficientzerotensor(5)) is None


@pytest.mark.parametrize("size", [1e-30, 1e-25, 1e-12, 1.0, 1e12, 1e25, 1e30])
def test_lengths_whose_squares_leave_float32(size):
    before, gone = torch.full((900,), size), torch.full((900,), size / 2)
    ((_, move, ratio),) = Weights().changes([Moved(["x"], 900, before, before + gone)])
    assert float(move) == pytest.approx(size * 15, rel=1e-5)
    assert float(ratio) == pytest.approx(0.5, rel=1e-5)
    assert float(length_of(before)) == pytest.approx(size * 30, rel=1e-5)
    assert float(length_of(before * (3 + 4j))) == pytest.approx(size * 150, rel=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.skipif(not hasattr(torch, "float8_e5m2"), reason="this PyTorch has no such type")
def test_the_length_of_a_gradient_in_a_small_type():
    assert float(length_of(torch.full((4,), 2.0).to(torch.float8_e5m2))) == 4
    assert float(length_of(torch.full((4,), 2.0 + 0j).to(torch.complex32))) == 4


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this PyTorch has no such type")
def test_a_type_that_nothing_reads():
    tensor = torch.empty(6, dtype=torch.float4_e2m1fn_x2)
    assert to_array(tensor) is None
    assert Weights().sample(tensor) is None
    assert digest_of(tensor).shape == (1,)
