"""What an accelerator's tensors are reduced by is what the host reduces them to; on the CPU where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from properties.strategies import FLOATS
from properties.tensors import READABLE, WHOLE, numbers_in, state_of, tensors

from smd_agent.core.reduction_config import CHANNEL_SHARES, COUNTS, OPS
from smd_agent.core.reductions import channel_shares, count_by_size, reduce_batch
from smd_agent.pytorch.device import histograms
from smd_agent.pytorch.device.channel_shares import DeviceShares
from smd_agent.pytorch.device.reductions import DeviceReductions, Snapshot, reducible_on_device

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

EVERY = [
    (name, absolute)
    for absolute in (False, True)
    for name in OPS
    if name not in (*CHANNEL_SHARES, "prod") and not (absolute and name in COUNTS)
]
EXACT = {"min", "max", "median", "p5", "p50", "p95", *COUNTS}
FORMS = tuple(READABLE)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KNOWN = (*FLOATS, "bfloat16", *WHOLE)


@given(
    st.lists(tensors(forms=FORMS, dtypes=KNOWN), min_size=1, max_size=4),
    st.lists(st.sampled_from(EVERY), min_size=1, max_size=5, unique=True),
)
def test_every_reduction(drawn, ops):
    hosts = [tensor for one in drawn if (tensor := one.make()).numel()]
    if not hosts:
        return
    made = [tensor.to(DEVICE) for tensor in hosts]
    before = [state_of(tensor) for tensor in made]
    assert all(reducible_on_device(tensor, ops) for tensor in made)
    found = DeviceReductions(made, tuple(ops)).result()
    assert [state_of(tensor) for tensor in made] == before
    wanted = reduce_batch([numbers_in(tensor) for tensor in hosts], ops)
    for tensor, row, expected in zip(hosts, found, wanted, strict=True):
        with np.errstate(all="ignore"):
            x = np.abs(numbers_in(tensor).astype(np.float64))
            largest, terms = x.max(), x.sum()
        for (name, _), value, want in zip(ops, row, expected, strict=True):
            if name in EXACT or not np.isfinite(largest):
                np.testing.assert_array_equal(value, want)
                continue
            if not np.isfinite(want) or largest > 1e150:
                # What overflows does so in another order.
                continue
            within = 1e-6 * (terms if name in ("sum", "mean") else abs(want)) + 1e-12 * largest
            within += 2e-12 * largest * np.sqrt(abs(want)) if name == "variance" else 0
            assert abs(value - want) <= within + 1e-150, (name, value, want)


@given(tensors(forms=FORMS, dtypes=KNOWN), st.booleans())
def test_every_histogram(drawn, fine):
    tensor = drawn.make()
    if tensor.numel():
        placed = tensor.to(DEVICE)
        before = state_of(placed)
        found = histograms.histogram_of(placed, fine).cpu().numpy()
        np.testing.assert_array_equal(found, count_by_size(numbers_in(tensor), fine))
        low, high, total, _ = histograms.finite_sums(placed).tolist()
        assert state_of(placed) == before
        with np.errstate(invalid="ignore"):
            x = numbers_in(tensor).astype(np.float64)
        finite = x[np.isfinite(x)]
        if finite.size:
            assert (low, high) == (finite.min(), finite.max())
            with np.errstate(all="ignore"):
                terms = np.abs(finite).sum()
            assert not np.isfinite(terms) or abs(total - finite.sum()) <= 1e-9 * terms


RANGES = ("zeros", "ones", "unit", "normal", "mostly zero", "alternating", "some nan", "tiny", "bits", "integral")


@given(tensors(forms=FORMS, dtypes=KNOWN, kinds=RANGES, most=20_000, fewest_dims=2), st.integers(0, 4))
def test_every_share_of_channels(drawn, axis):
    tensor = drawn.make()
    if tensor.dim() < 2 or not tensor.numel():
        return
    names = ("dead_share", "saturated_share")
    axis %= tensor.dim()
    found = DeviceShares([(tensor.to(DEVICE), axis, names)]).result()
    np.testing.assert_array_equal(found, channel_shares(numbers_in(tensor), axis, names))


@given(tensors(forms=FORMS))
def test_a_copy_of_any_tensor(drawn):
    tensor = drawn.make()
    buffers = {}
    snapshot = Snapshot(tensor.to(DEVICE), buffers)
    np.testing.assert_array_equal(numbers_in(snapshot.read()), numbers_in(tensor))
    snapshot.free()
    assert sum(map(len, buffers.values())) == 1
