"""What is looked at of any tensor of PyTorch is what NumPy finds in it, and nothing of the tensor changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import facts_by_numpy as oracle

pytest.importorskip("torch")

import torch
from properties.tensors import FLOATING, FORMS, OWN, READABLE, SPARSE, Tensor, numbers_in, plain, state_of, tensors

from smd_agent.framework import training_facts as facts
from smd_agent.framework.weight_changes import Moved
from smd_agent.pytorch.arrays import has_memory, to_array
from smd_agent.pytorch.capture.fact_adapters import Weights, digest_of
from smd_agent.pytorch.capture.l2_norms import length_of
from smd_agent.pytorch.capture.model_inputs import numbers_of_inputs

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@given(tensors())
def test_the_array_of_any_tensor(drawn: Tensor):
    tensor = drawn.make()
    before = state_of(tensor)
    found = to_array(tensor)
    assert state_of(tensor) == before
    if drawn.form not in {**READABLE, **SPARSE, **OWN}:
        assert found is None or not tensor.numel()
        return
    assert found is not None
    array, note = found
    wanted = numbers_in(tensor)
    assert array.dtype == wanted.dtype
    assert array.shape == wanted.shape
    np.testing.assert_array_equal(array, wanted)
    name = str(tensor.dtype).removeprefix("torch.")
    assert (note or array.dtype.name) == name


@given(tensors(most=300))
def test_memory_of_any_tensor(drawn: Tensor):
    tensor = drawn.make()
    assert has_memory(tensor) == (drawn.form in READABLE and tensor.numel() > 0)


@given(st.lists(tensors(), min_size=1, max_size=5))
def test_the_numbers_of_any_inputs(drawn: list[Tensor]):
    made = [one.make() for one in drawn]
    before = [state_of(tensor) for tensor in made]
    found = dict(numbers_of_inputs(made, 4))
    assert [state_of(tensor) for tensor in made] == before
    for i, (one, tensor) in enumerate(zip(drawn, made, strict=True)):
        is_whole = tensor.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        if i < 4 and one.has_memory and (tensor.is_floating_point() or is_whole) and tensor.numel() > 1:
            numbers = numbers_in(tensor)
            oracle.check_input(found.pop(i), numbers.astype(np.float64) if is_whole else numbers)
    assert not found


@given(st.lists(tensors(), min_size=1, max_size=3))
def test_the_digest_of_any_inputs(drawn: list[Tensor]):
    made = [one.make() for one in drawn]
    before = [state_of(tensor) for tensor in made]
    found = digest_of(made)
    assert [state_of(tensor) for tensor in made] == before
    known = [tensor for one, tensor in zip(drawn, made, strict=True) if one.has_memory and tensor.numel()]
    if not known:
        assert found is None
        return
    assert found is not None
    assert (found.dtype, found.shape) == (torch.int64, (1,))
    # The same values in another layout have the same digest.
    again = [torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach()) for tensor in known]
    assert int(digest_of(again)) == int(found)
    last = again[-1].reshape(-1)
    if last.is_complex():
        # Two floats each: so they are counted where a part of the elements is looked at.
        last = torch.view_as_real(last).reshape(-1)
    place = oracle.place_looked_at(last.numel(), drawn[-1].seed)
    if last.dtype is torch.bool:
        last[place] = ~last[place]
    else:
        last.view(torch.uint8)[place * last.element_size()] ^= 1
    assert int(digest_of(again)) != int(found)


@given(
    tensors(forms=tuple({**READABLE, **OWN}), dtypes=FLOATING),
    st.sampled_from(["normal", "huge", "tiny", "zeros", "bits"]),
)
def test_how_far_any_parameter_moves(drawn: Tensor, kind: str):
    tensor = drawn.make()
    weights = Weights()
    before = weights.sample(tensor)
    if not has_memory(tensor):
        assert before is None
        return
    assert before is not None
    assert before.dtype in (torch.float32, torch.float64)
    assert before.is_contiguous()
    assert before.data_ptr() != tensor.data_ptr()
    after = before + plain(before.shape, "float32", kind, drawn.seed).to(before.dtype)
    ((_, move, ratio),) = weights.changes([Moved(["x"], tensor.numel(), before, after)])
    oracle.check_change(numbers_in(before), numbers_in(after), tensor.numel(), float(move), float(ratio))


@given(st.lists(tensors(forms=tuple(READABLE), dtypes=FLOATING, most=5000), min_size=1, max_size=4))
def test_how_far_several_parameters_move(drawn: list[Tensor]):
    weights = Weights()
    made = [tensor for one in drawn if (tensor := one.make()).numel()]
    before = [weights.sample(tensor) for tensor in made]
    moved = [Moved([str(i)], made[i].numel(), one, one * 1.5) for i, one in enumerate(before)]
    found = [*weights.changes(moved)]
    assert {one.names[0] for one, _, _ in found} == {one.names[0] for one in moved}
    for one, move, ratio in found:
        oracle.check_change(numbers_in(one.before), numbers_in(one.after), one.size, float(move), float(ratio))


@given(tensors(forms=tuple(READABLE), dtypes=(*FLOATING, "complex64", "complex128", "complex32")))
def test_the_length_of_any_gradient(drawn: Tensor):
    tensor = drawn.make()
    if has_memory(tensor):
        part = facts.sample(tensor.detach().reshape(-1))
        oracle.check_length(numbers_in(part), float(length_of(part)))


@pytest.mark.long
def test_tensors_of_more_elements_than_32_bits_count():
    tensor = torch.tensor([0.0, 1.0]).expand(2**30 + 3, 2)
    assert to_array(tensor)[0].shape == (2**30 + 3, 2)
    ((_, numbers),) = numbers_of_inputs(tensor, 4)
    assert (numbers["min"], numbers["max"], numbers["mean"]) == (0, 1, 0.5)
    assert digest_of(tensor) is not None
    mask = torch.ones(1, dtype=torch.bool).expand(2**16, 2**16)
    assert digest_of(mask) is not None


def test_there_is_a_form_of_each_kind():
    assert {*FORMS} > {*READABLE} > {"plain"}
    assert math.prod((2, 3)) == 6
