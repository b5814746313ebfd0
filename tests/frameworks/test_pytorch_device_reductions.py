"""What an accelerator's tensors are reduced by, on CPU tensors: the arithmetic does not know where it runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from smd_agent.core.reductions import channel_shares, count_by_size, reduce_batch
from smd_agent.pytorch.arrays import to_array
from smd_agent.pytorch.device import free_memory, histograms, quantiles
from smd_agent.pytorch.device.channel_shares import DeviceShares
from smd_agent.pytorch.device.reductions import WIDTH, DeviceReductions, HostCopy, reducible_on_device

NAMES = ("min", "max", "mean", "std", "variance", "sum", "l1", "l2")
COUNTS = ("zero_share", "nan_count", "inf_count")
OPS = (*((name, absolute) for absolute in (False, True) for name in NAMES), *((name, False) for name in COUNTS))


def reference(tensor):
    rows = []
    x = tensor.detach().to(torch.float64).numpy().ravel()
    for y in (x, np.abs(x)):
        with np.errstate(all="ignore"):
            norms = [np.abs(y).sum(), np.sqrt((y * y).sum())]
            if y.size == 0:
                rows += [np.nan] * 5 + [0.0, *norms]
            else:
                rows += [y.min(), y.max(), y.mean(), y.std(), y.var(), y.sum(), *norms]
    values = x.tolist()
    infs = sum(value in (float("inf"), -float("inf")) for value in values)
    share = values.count(0.0) / len(values) if values else np.nan
    return [*rows, share, sum(value != value for value in values), infs]


def assert_reduced(tensors):
    result = DeviceReductions(tensors, OPS).result()
    assert result.shape == (len(tensors), len(OPS))
    for tensor, row in zip(tensors, result, strict=True):
        size = float(tensor.detach().double().abs().sum()) if tensor.numel() else 0.0
        allowed = 1e-12 * size if np.isfinite(size) else 0.0
        np.testing.assert_allclose(row, reference(tensor), rtol=1e-9, atol=allowed, err_msg=str(tensor.shape))


def test_tensors_of_all_sizes_and_dtypes_in_any_order():
    torch.manual_seed(0)
    sizes = [0, 1, 7, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 5]
    dtypes = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
    tensors = [(3 + torch.randn(size)).to(dtype) for size in sizes for dtype in dtypes]
    tensors += [torch.randint(-100, 100, (size,), dtype=torch.int32) for size in sizes]
    tensors += [torch.rand(50) < 0.5, torch.randn(70, 90).t(), torch.randn(4, 5, requires_grad=True), torch.randn(())]
    assert all(reducible_on_device(tensor, OPS) for tensor in tensors)
    assert_reduced(tensors)


def test_more_than_one_batch(monkeypatch):
    monkeypatch.setattr(free_memory, "MOST_ELEMENTS", 2 * WIDTH)
    torch.manual_seed(1)
    assert_reduced([torch.randn(size) for size in (9 * WIDTH + 3, 10, 2 * WIDTH, 5, WIDTH, WIDTH, 1)])


def test_zeros_are_those_of_the_tensor_and_not_of_what_fills_its_last_row():
    torch.manual_seed(4)
    assert_reduced([torch.zeros(size) for size in (1, WIDTH - 1, WIDTH + 1)] + [torch.ones(5), torch.randn(99).relu()])


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nan_and_inf_stay_in_their_own_tensor(special):
    torch.manual_seed(2)
    tensors = [torch.randn(size) for size in (10, 3 * WIDTH, 10, 3 * WIDTH)]
    tensors[0][3] = tensors[1][WIDTH + 5] = special
    assert_reduced(tensors)


def test_values_that_cancel_or_overflow_in_float32():
    torch.manual_seed(3)
    constant = torch.full((5 * WIDTH + 3,), 0.1)
    assert_reduced([1e30 * torch.randn(3 * WIDTH), 1e-30 * torch.randn(WIDTH + 9), 1000 + 0.01 * torch.randn(20_000)])
    assert DeviceReductions([constant], (("std", False),)).result()[0, 0] < 1e-12


def test_what_it_leaves_to_the_ordinary_way():
    most = free_memory.MOST_ELEMENTS
    assert reducible_on_device(torch.ones(1).expand(most), (("median", True), ("mean", False)))
    assert not reducible_on_device(torch.ones(1).expand(most + 1), (("median", False),))
    assert not reducible_on_device(torch.ones(3), (("prod", False),))
    assert not reducible_on_device(torch.ones(3, dtype=torch.complex64), OPS)
    assert not reducible_on_device(torch.eye(3).to_sparse(), OPS)


def test_nothing_at_all():
    assert DeviceReductions([], OPS).result().shape == (0, len(OPS))
    assert HostCopy(torch.arange(3)).ready()


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int16, torch.uint8, torch.bool]
)
def test_shares_of_channels_are_those_of_the_host(dtype):
    torch.manual_seed(5)
    kept = torch.rand(8) < 0.5
    outputs = []
    for activation in (torch.relu, torch.tanh, torch.sigmoid, lambda x: x):
        for shape, axis in (((6, 8), 1), ((3, 8, 10, 9), 1), ((3, 40, 8), 2), ((8, 7, 7), 0)):
            scale = kept.double() if activation is torch.relu else 1 + 90 * kept.double()
            wide = [1] * len(shape)
            wide[axis] = 8
            outputs.append((activation(torch.randn(shape).double() * scale.reshape(wide)).to(dtype), axis))
    outputs.append((torch.full((9, 2), 0.5**10).to(dtype), 1))
    outputs[-1][0][0, 0] = 1
    outputs.append((torch.ones(9, 4).to(dtype), 1))
    if dtype.is_floating_point:
        outputs.append((torch.ones(9, 4).to(dtype), 1))
        outputs[-1][0][3, 3] = 1.5
    outputs += [(outputs[1][0].contiguous(memory_format=torch.channels_last), 1), (outputs[0][0].t(), 0)]
    names = ("saturated_share", "dead_share")
    late = DeviceShares([(tensor, axis, names) for tensor, axis in outputs])
    assert late.ready()
    host = [channel_shares(to_array(tensor)[0], axis, names) for tensor, axis in outputs]
    np.testing.assert_array_equal(late.result().reshape(-1, 2), host)
    assert len({*late.result().tolist()}) > (2 if dtype.is_floating_point else 1)


def test_no_shares_of_channels():
    assert DeviceShares([]).ready()
    assert DeviceShares([]).result().shape == (0,)


DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool),
]


def of_every_kind(dtype):
    """Tensors of ordinary and of extreme values, of many sizes."""
    torch.manual_seed(6)
    if not dtype.is_floating_point:
        kinds = [torch.randint(0, 2, (size,)) for size in (1, 2, 7, 1000)]
        if dtype is not torch.bool:
            info = torch.iinfo(dtype)
            kinds.append(torch.randint(max(info.min, -(2**62)), min(info.max, 2**62), (2001,)))
            kinds.append(torch.tensor([info.min, info.max, 0, info.min]))
        return [kind.to(dtype) for kind in kinds]
    info, inf, nan = torch.finfo(dtype), float("inf"), float("nan")
    odd = [0.0, -0.0, info.tiny, -info.tiny, info.tiny / 4, info.max, info.min, info.eps, 1.0, -1.0, 2.0, -2.0, 0.5]
    powers = [sign * 2.0**e for e in range(-70, 70) for sign in (1, -1)]
    kinds = [torch.randn(size) * 10 for size in (1, 2, 3, 20, 21, 9001)]
    kinds += [torch.tensor(values, dtype=torch.float64) for values in (odd, powers, [*odd, inf, inf, -inf])]
    kinds += [torch.randn(30, 50).t(), torch.tensor([3.0, nan, 1.0, inf, nan]), torch.zeros(5)]
    return [kind.to(dtype) for kind in kinds]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_quantiles_are_those_of_the_host(dtype):
    ops = tuple((name, absolute) for name in ("median", "p5", "p50", "p95") for absolute in (False, True))
    ops = (("max", False), *ops, ("l2", False))
    tensors = of_every_kind(dtype)
    assert all(reducible_on_device(tensor, ops) for tensor in tensors)
    got = DeviceReductions([*tensors, torch.empty(0, dtype=dtype)], ops).result()
    want = reduce_batch([to_array(tensor)[0] for tensor in tensors], ops)
    np.testing.assert_array_equal(got[:-1, 1:-1], want[:, 1:-1])
    np.testing.assert_array_equal(got[:-1, 0], want[:, 0])
    assert np.isnan(got[-1, :-1]).all()
    assert np.isfinite(got[:, 1:-1]).sum() > 8


@pytest.mark.parametrize("most", [free_memory.MOST_ELEMENTS, 7])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_histograms_are_those_of_the_host(monkeypatch, dtype, most):
    monkeypatch.setattr(free_memory, "MOST_ELEMENTS", most)
    for tensor in of_every_kind(dtype):
        counts = histograms.histogram_of(tensor)
        assert (counts.dtype, tuple(counts.shape)) == (torch.int64, (260,))
        np.testing.assert_array_equal(counts.numpy(), count_by_size(to_array(tensor)[0]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_programs_tensors_stay_as_they_are(dtype):
    tensor = torch.tensor([3, 0, 1, 2]).to(dtype)
    before, version = tensor.clone(), tensor._version
    histograms.finite_sums(tensor)
    histograms.histogram_of(tensor)
    quantiles.elements_for(tensor, (("median", True), ("p5", False)))
    DeviceReductions([tensor], OPS).result()
    assert (tensor.tolist(), tensor._version) == (before.tolist(), version)
