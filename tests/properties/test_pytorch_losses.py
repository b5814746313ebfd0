"""What is looked at of any call of a loss of PyTorch is what NumPy finds in what it was given and has returned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch
from properties.tensors import FORMS, READABLE, Tensor, numbers_in, plain, state_of, tensors
from torch.nn import functional as F

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.step_events import LossCall, ModelCall, StepEnd
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.capture import token_padding
from smd_agent.pytorch.capture.loss_inputs import LossInputs
from smd_agent.pytorch.capture.loss_targets import LossTargets

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LOOKED_AT = 65_536
FLOATS = ("float32", "float64", "bfloat16", "float16")
# Of a nested one not even the shape is known; with quantised and freed ones PyTorch computes no loss, or crashes.
GIVEN = tuple(form for form in FORMS if form.split()[0] not in ("nested", "quantised", "freed"))
REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
FRONTS = {
    "nothing": lambda values: values,
    "softmax": lambda values: values.softmax(-1),
    "sigmoid": lambda values: values.sigmoid().reshape(values.shape),
    "tanh": lambda values: values.tanh(),
    "relu, as parts": lambda values: values.relu()[:],
    "bounded": lambda values: F.hardtanh(values, -2.0, 3.0),
}


class Kept:
    """Takes what is saved, by its last name."""

    mode = ModeKeys.TRAIN

    def __init__(self):
        self.found = {}

    def collections_due(self):
        return {CollectionKeys.USAGE}

    def save_tensors(self, names, values):
        for name, value in zip(names, values, strict=True):
            assert not isinstance(value, torch.Tensor) or value.shape == ()
            self.found[name.rpartition("/")[2]] = float(value)


class Roles:
    """Nothing is a weight."""

    def keep_out(self, names):
        pass


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setattr(guard, "strict", True)


def called(function, args):
    """The loss and what is looked at of a call; None where PyTorch refuses it."""
    try:
        loss = getattr(torch._C._nn, function, None) or getattr(torch, function)
        loss = loss(*args)
    except (RuntimeError, IndexError, NotImplementedError, ValueError):
        return None
    kept = Kept()
    before = [state_of(one) for one in args]
    looked = LossInputs(Usage(kept, Roles(), {}), LossGuesses(torch))
    looked.look_at(LossCall(function, tuple(args), {}, loss))
    targets = LossTargets(Usage(kept, Roles(), {}))
    targets.look_at(LossCall(function, tuple(args), {}))
    targets.close(StepEnd())
    # A tensor computed from others may not have been computed at all before.
    assert [state_of(one) for one in args] == before
    return loss, kept.found


def in_front(drawn: Tensor, front: str) -> tuple[torch.Tensor, str]:
    """A prediction, and what it comes from: nothing where it cannot be trained so."""
    tensor = drawn.make()
    if drawn.form in READABLE and tensor.dim() and tensor.dtype in (torch.float32, torch.float64):
        return FRONTS[front](tensor.detach().clone().requires_grad_()), front
    return tensor, "nothing"


def rows_looked_at(values: np.ndarray) -> np.ndarray:
    if values.ndim == 1:
        return values
    for axis in range(2, values.ndim):
        values = values.take(range(0, values.shape[axis], max(-(-values.shape[axis] // 16), 1)), axis)
    return values[: max(8, LOOKED_AT * values.shape[0] // max(values.size, 1))]


def close(found, wanted, tolerance=2e-5):
    assert (
        found == wanted
        or (math.isnan(found) and math.isnan(wanted))
        or abs(found - wanted) <= tolerance * max(1, abs(wanted))
    ), (found, wanted)


def labels_for(values: torch.Tensor, classes: int, labelled: str, ignored: int, rng: Any) -> torch.Tensor:
    """Labels of any kind for the input of a loss of classes."""
    if labelled == "probabilities":
        return torch.rand(values.shape, dtype=values.dtype)
    shape = (values.shape[0], *values.shape[2:]) if values.dim() > 1 else ()
    labels = rng.integers(0, classes, shape) if classes else np.zeros(shape, np.int64)
    if "ignored" in labelled:
        labels = np.where(rng.random(shape) < (0.5 if "some" in labelled else 2), ignored, labels)
    return torch.from_numpy(np.asarray(labels, np.int64))


def check_rows(found: dict[str, float], values: np.ndarray, classes: int) -> None:
    assert found["classes"] == classes
    part = rows_looked_at(values).astype("f4")
    np.testing.assert_array_equal((found["input_min"], found["input_max"]), (part.min(), part.max()))
    if np.isfinite(part).all():
        sums = np.abs(part.astype(np.longdouble).sum(1 if part.ndim > 1 else 0) - 1).max()
        close(found["row_sum_error"], float(sums), 1e-5 * (np.abs(part).max() * classes + 1))


def check_labels(found: dict[str, float], flat: np.ndarray, ignored: int) -> np.ndarray:
    """Check what is found of labels, and return those that count."""
    counts = flat[flat != ignored]
    assert found["labels"] == counts.size
    close(found["ignored"], 1 - counts.size / flat.size)
    if not counts.size:
        assert found["label_min"] > found["label_max"]
        return counts
    assert (found["label_min"], found["label_max"]) == (counts.min(), counts.max())
    frequent = np.bincount(counts)
    assert frequent[int(found["top_label"])] == frequent.max()
    close(found["top_share"], frequent.max() / counts.size)
    return counts


@given(
    tensors(forms=GIVEN, dtypes=FLOATS, fewest_dims=1, kinds=("normal", "unit", "zeros", "some nan", "inf")),
    st.sampled_from([*FRONTS]),
    st.sampled_from([*REDUCTIONS]),
    st.sampled_from([-100, 0, 1]),
    st.sampled_from(["none", "ones", "random"]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from(["all", "some ignored", "all ignored", "probabilities"]),
)
def test_what_a_loss_of_classes_is_given(drawn, front, reduction, ignored, weighted, smoothing, labelled):
    values, front = in_front(drawn, front)
    classes = values.shape[1] if values.dim() > 1 else values.shape[0]
    rng = np.random.default_rng(drawn.seed)
    target = labels_for(values, classes, labelled, ignored, rng)
    weight = None if weighted == "none" else torch.ones(classes, dtype=values.dtype)
    if weighted == "random":
        weight = torch.from_numpy(rng.random(classes)).to(values.dtype)
    ended = called("cross_entropy_loss", [values, target, weight, REDUCTIONS[reduction], ignored, smoothing])
    if ended is None or drawn.form not in READABLE or not values.numel() or not target.numel():
        return
    loss, found = ended
    assert (found["elements"], found["axis_0"]) == (target.numel(), (*target.shape, 1)[0])
    check_rows(found, numbers_in(values), classes)
    if front != "nothing":
        assert found["activated"] == (front == "softmax")
        assert found.get("softmax_over") == (values.shape[-1] if front == "softmax" else None)
    if labelled == "probabilities":
        assert "labels" not in found
        return
    counts = check_labels(found, target.numpy().reshape(-1)[:LOOKED_AT], ignored)
    if loss.requires_grad and "loss" in found:
        whole = float(loss.detach().double().sum())
        if reduction == "mean":
            close(found["loss"], whole)
        elif counts.size and math.isfinite(whole):
            close(found["loss"], whole / counts.size, 2e-2 if loss.element_size() == 2 else 1e-4)
    if "guess" in found and counts.size and weight is None:
        shares = (1 - smoothing) * np.bincount(counts, minlength=classes) / counts.size + smoothing / classes
        close(found["guess"], float(-sum(share * math.log(share) for share in shares if share)), 1e-4)


@given(
    tensors(forms=GIVEN, dtypes=FLOATS, kinds=("normal", "unit", "zeros", "some nan", "inf")),
    st.sampled_from([*FRONTS]),
    st.sampled_from([*REDUCTIONS]),
    st.booleans(),
    st.sampled_from(["random", "yes and no", "one value"]),
)
def test_what_a_loss_of_yes_and_no_is_given(drawn, front, reduction, logits, targeted):
    values, front = in_front(drawn, front)
    if not logits and drawn.form in READABLE:
        values = values.detach().float().clamp(0, 1).nan_to_num(0.5).requires_grad_()
    dtype = values.dtype if values.dtype.is_floating_point else torch.float32
    target = torch.rand(values.shape, generator=torch.Generator().manual_seed(drawn.seed)).to(dtype)
    if targeted != "random":
        target = (target > 0.5).to(dtype) if targeted == "yes and no" else torch.full_like(target, 1.0)
    function = "binary_cross_entropy_with_logits" if logits else "binary_cross_entropy_loss"
    args = [values, target, None, *([None] if logits else []), REDUCTIONS[reduction]]
    try:
        loss = getattr(torch if logits else torch._C._nn, function.removesuffix("_loss"))(*args)
    except (RuntimeError, NotImplementedError, ValueError):
        return
    kept = Kept()
    before = [state_of(one) for one in (values, target)]
    name = "binary_cross_entropy_with_logits_loss" if logits else function
    LossInputs(Usage(kept, Roles(), {}), LossGuesses(torch)).look_at(LossCall(name, tuple(args), {}, loss))
    assert [state_of(one) for one in (values, target)] == before
    if drawn.form not in READABLE or not values.numel():
        return
    found = kept.found
    if logits:
        flat = numbers_in(values).reshape(-1)[:LOOKED_AT]
        np.testing.assert_array_equal((found["input_min"], found["input_max"]), (flat.min(), flat.max()))
    if not loss.requires_grad:
        return
    whole = float(loss.detach().double().sum())
    if math.isfinite(whole):
        share = 1 if reduction == "mean" else target.numel()
        close(found["loss"], whole / share, 2e-2 if loss.element_size() == 2 else 1e-4)
    if "guess" in found:
        rows = numbers_in(target).astype("d")
        rows = rows.reshape(len(rows), -1) if rows.ndim > 1 else rows.reshape(-1, 1)
        rows = rows[: max(1, LOOKED_AT // max(rows.shape[1], 1))]
        shares = np.stack([rows.mean(0), 1 - rows.mean(0)])
        with np.errstate(all="ignore"):
            wanted = -np.nansum(shares * np.log(shares), 0).mean()
            least = -np.nansum(rows * np.log(rows) + (1 - rows) * np.log(1 - rows)) / rows.size
        close(found["guess"], float(wanted), 1e-3)
        close(found["least"], float(least), 1e-3)


RANGES = {"softmax": (0, 1), "sigmoid": (0, 1), "tanh": (-1, 1), "relu, as parts": (0, None), "bounded": (-2, 3)}


@given(
    tensors(forms=GIVEN, dtypes=FLOATS, kinds=("normal", "unit", "zeros", "huge", "some nan")),
    st.sampled_from([*FRONTS]),
    st.sampled_from(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]),
    st.booleans(),
    st.booleans(),
)
def test_what_a_loss_of_numbers_is_given(drawn, front, function, swapped, broadcast):
    values, front = in_front(drawn, front)
    target = plain(tuple(values.shape), "float32", "normal", drawn.seed + 1)
    if broadcast and target.dim():
        target = target[:1].expand(target.shape)
    pair = [target, values] if swapped else [values, target]
    ended = called(function, pair)
    if ended is None or drawn.form not in READABLE or not values.numel():
        return
    _, found = ended

    def repeated(tensor):
        return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if not stride)

    names = ("input_repeated", "target_repeated")
    assert tuple(found[name] for name in names) == tuple(repeated(one) for one in pair)
    if front == "nothing":
        return
    least, most = RANGES[front]
    assert (found.get("reach_min"), found.get("reach_max")) == (least, most)
    flat = numbers_in(target).reshape(-1)[:LOOKED_AT]
    assert (found["target_min"], found["target_max"]) == (flat.min(), flat.max())
    low = least - 1e-3 * max(abs(least), 1)
    high = math.inf if most is None else most + 1e-3 * max(abs(most), 1)
    close(found["out_of_reach"], float(((flat < low) | (flat > high)).mean()))


@given(
    st.tuples(st.integers(0, 70), st.integers(0, 70)),
    st.sampled_from(["int64", "int32", "uint8", "int16"]),
    st.sampled_from(["whole", "without the first", "flat", "another"]),
    st.sampled_from([0, 1]),
    st.integers(0, 1000),
)
def test_targets_that_are_the_next_tokens(shape, dtype, kind, axis, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 5, shape)
    if kind == "another":
        target = rng.integers(-1, 5, (shape[0],))
    else:
        target = np.roll(tokens, -1, axis)
        if kind != "whole":
            target = np.delete(target, -1, axis) if shape[axis] else target
        target = target.reshape(-1) if kind == "flat" else target
    model = torch.from_numpy(tokens).to(getattr(torch, dtype))
    kept = Kept()
    looked = LossTargets(Usage(kept, Roles(), {}))
    looked.before_call(ModelCall("Net_0", None, [(model,), {"mask": torch.ones(3)}]))
    wanted = torch.from_numpy(np.ascontiguousarray(target))
    looked.look_at(LossCall("cross_entropy_loss", (torch.zeros(1), wanted), {}))
    found = kept.found
    if not target.size:
        assert not found
        return
    assert found["elements"] == target.size
    for k in range(2):
        if f"next_{k}" not in found:
            continue
        assert found[f"length_{k}"] == shape[k]
        shorter = tuple(size - (i == k) for i, size in enumerate(shape))
        whole = target.reshape(shape).take(range(shape[k] - 1), k) if target.size == tokens.size else None
        whole = target.reshape(shorter) if whole is None else whole
        later, before = (np.delete(tokens[:64, :64], place, k) for place in (0, -1))
        whole = whole[: later.shape[0], : later.shape[1]]
        compared = (later != before) & (whole >= 0)
        assert found[f"compared_{k}"] == compared.sum()
        close(found[f"next_{k}"], float(((whole == later) & compared).sum() / max(compared.sum(), 1)))
    if kind in ("whole", "without the first", "flat") and shape[axis] > 1 and 0 not in shape:
        assert f"next_{axis}" in found


@given(
    st.tuples(st.integers(0, 70), st.integers(0, 70)),
    st.sampled_from(["int64", "int32", "uint8", "int16"]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from([0, 1]),
    st.integers(0, 1000),
)
def test_how_far_targets_are_shifted(shape, dtype, offset, missing, flat, axis, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 9, shape)
    target = np.roll(tokens, -offset, axis)
    target = np.where(rng.random(shape) < 0.1, -1, target)
    target = target.take(range(max(shape[axis] - missing, 0)), axis)
    kept = Kept()
    looked = LossTargets(Usage(kept, Roles(), {}))
    looked.before_call(ModelCall("Net_0", None, [(), {"ids": torch.from_numpy(tokens).to(getattr(torch, dtype))}]))
    wanted = torch.from_numpy(np.ascontiguousarray(target.reshape(-1) if flat else target))
    looked.look_at(LossCall("cross_entropy_loss", (torch.zeros(1), wanted), {}))
    found = kept.found
    if shape[axis] < 3 or not target.size:
        assert f"same_{axis}" not in found
        return
    part, count = tokens[:64, :64], min(shape[axis], 64) - 2
    same, following, second = (part.take(range(first, first + count), axis) for first in range(3))
    targets = target.take(range(shape[axis] - 2), axis)[: same.shape[0], : same.shape[1]]
    distinct = (same != following) & (following != second) & (same != second) & (targets >= 0)
    assert found[f"distinct_{axis}"] == distinct.sum()
    for name, other in (("same", same), ("second", second)):
        close(found[f"{name}_{axis}"], float(((targets == other) & distinct).sum() / max(distinct.sum(), 1)))
    if distinct.any() and offset != 1:
        assert found[f"{'same' if not offset else 'second'}_{axis}"] == 1


def rows_with_ends(shape, most, seed):
    """Rows of tokens of which some end in one of them."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, most, shape)
    for row in tokens:
        row[len(row) - rng.integers(0, len(row) + 1) :] = rng.choice([0, 0, 0, 1])
    return rng, tokens


@given(st.tuples(st.integers(1, 9), st.integers(3, 12)), st.integers(2, 9), st.booleans(), st.integers(0, 1000))
def test_the_ends_of_rows(shape, most, ignores, seed):
    rng, tokens = rows_with_ends(shape, most, seed)
    targets = np.where(rng.random((shape[0], shape[1] - 1)) < 0.3, -1, tokens[:, 1:])
    found = token_padding.ends(torch.from_numpy(tokens), torch.from_numpy(targets))
    ends, inside, over, before = set(), [], [], set()
    for row, target in zip(tokens.tolist(), targets.tolist(), strict=True):
        length = next((n for n, one in enumerate(row[::-1]) if one != row[-1]), len(row))
        start = len(row) - length
        if length < 2 or not start or row[-1] in row[1:start]:
            continue
        ends.add(row[-1])
        over.append(target[start - 1] >= 0)
        before.add(row[start - 1])
        inside += [one >= 0 for one in target[start:]]
    assert found["padded"] == (len(over) if len(ends) == 1 else 0)
    assert found["padding"] == len(inside)
    if over:
        close(found["padding_counts"], float(np.mean(inside)))
        close(found["end_counts"], float(np.mean(over)))
        assert found["same_end"] == (len(before) == 1)
