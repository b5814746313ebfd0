"""Norms of gradients and updates in the series of PyTorch: those that PyTorch computes, of what the updates use."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

import torch
from harness.pytorch_series import hook_for, loss_of, small
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from smd_agent.core import budget
from smd_agent.pytorch.series import norms
from smd_agent.pytorch.series.lengths import lengths_of, measured_parts, together

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def norm(tensor):
    return torch.linalg.vector_norm(tensor.detach().double()).item()


def named(model, title="Sequential"):
    return {f"{title}_{name}": parameter for name, parameter in model.named_parameters()}


def seen(model, before=None):
    """What a row of parameters has of gradients, or of what they are from what they were."""
    if before is None:
        return {
            f"series/gradient_l2/{name}": norm(parameter.grad)
            for name, parameter in named(model).items()
            if parameter.grad is not None
        }
    return {f"series/update_l2/{name}": norm(parameter - before[name]) for name, parameter in named(model).items()}


def copies(model):
    return {name: parameter.detach().clone() for name, parameter in named(model).items()}


def of(row, kind):
    return {name: value for name, value in row.items() if name.startswith(f"series/{kind}/")}


def train(model, optimizer, steps, clip=None, before_update=None):
    """Train; return what the program sees of each step: norms by parameter, of gradients and of updates."""
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        gradients = seen(model)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if before_update is not None:
            before_update(step)
        before = copies(model)
        optimizer.step()
        found.append((gradients, seen(model, before)))
    return found


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop])
def test_norms_are_those_that_pytorch_computes(out, rows, make):
    model = small()
    hook = hook_for(out, model)
    found = train(model, make(model.parameters(), lr=0.05), 5)
    hook.close()
    assert len(rows("parameters")) == 5
    for (gradients, changes), row, step in zip(found, rows("parameters"), rows("steps"), strict=True):
        assert of(row, "gradient_l2") == pytest.approx(gradients, rel=1e-5)
        assert of(row, "update_l2") == pytest.approx(changes, rel=1e-4)
        assert step["series/gradient_l2"] == pytest.approx(math.hypot(*gradients.values()), rel=1e-5)
        assert step["series/update_l2"] == pytest.approx(math.hypot(*changes.values()), rel=1e-4)


@pytest.mark.parametrize("every", [1, 2])
def test_norms_that_the_program_computes_to_clip_are_kept(out, rows, monkeypatch, every):
    monkeypatch.setattr(budget.Budget, "takes", lambda self: next(self.__dict__.setdefault("_turns", turns())))

    def turns():
        step = 0
        while True:
            yield step % every == 0
            step += 1

    measured = []
    lengths = norms.lengths_of
    monkeypatch.setattr(norms, "lengths_of", lambda tensors: measured.append(len(tensors)) or lengths(tensors))
    model = small()
    hook = hook_for(out, model)
    found = train(model, torch.optim.SGD(model.parameters(), lr=0.05), 6, clip=0.01)
    hook.close()
    totals = [row["series/gradient_l2"] for row in rows("steps")]
    assert totals == pytest.approx([math.hypot(*gradients.values()) for gradients, _ in found], rel=1e-5)
    each = [of(row, "gradient_l2") for row in rows("parameters")]
    assert each == [pytest.approx(gradients, rel=1e-5) for gradients, _ in found[::every]]
    # Only what updates change is measured by a pass of ours.
    assert len(measured) == len(each)


def test_gradients_that_are_clipped_in_part_are_measured_as_they_are_used(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    used = []
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        nn.utils.clip_grad_norm_(model[0].parameters(), 0.01)
        used.append(seen(model))
        optimizer.step()
    hook.close()
    assert [of(row, "gradient_l2") for row in rows("parameters")] == [pytest.approx(one, rel=1e-5) for one in used]


def test_norms_of_another_order_are_not_kept(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    loss_of(model).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01, norm_type=float("inf"))
    used = seen(model)
    optimizer.step()
    hook.close()
    assert of(rows("parameters")[0], "gradient_l2") == pytest.approx(used, rel=1e-5)


def test_what_the_program_has_measured_before_another_pass_is_forgotten(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    loss_of(model).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    loss_of(model).backward()
    used = seen(model)
    optimizer.step()
    hook.close()
    assert of(rows("parameters")[0], "gradient_l2") == pytest.approx(used, rel=1e-5)


@pytest.mark.parametrize("make", [torch.optim.LBFGS, torch.optim.SGD])
def test_gradients_of_a_closure_are_those_that_it_has_computed_last(out, rows, make):
    model = small()
    optimizer = make(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    used, changes = [], []
    for _ in range(3):
        x, y = torch.randn(6, 5), torch.randint(0, 3, (6,))

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        before = copies(model)
        optimizer.step(closure)
        used.append(seen(model))
        changes.append(seen(model, before))
    hook.close()
    assert [of(row, "gradient_l2") for row in rows("parameters")] == [pytest.approx(one, rel=1e-5) for one in used]
    # Before the first update no parameter has a gradient.
    assert [of(row, "update_l2") for row in rows("parameters")[1:]] == [
        pytest.approx(one, rel=1e-4) for one in changes[1:]
    ]


def test_gradients_are_those_without_the_loss_scale(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    hook = hook_for(out, model)
    used = []
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(loss_of(model)).backward()
        scaler.unscale_(optimizer)
        used.append(seen(model))
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    assert [of(row, "gradient_l2") for row in rows("parameters")] == [pytest.approx(one, rel=1e-5) for one in used]


def test_an_optimizer_that_unscales_in_its_own_kernel_is_told_the_scale(out, rows):
    model = small()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    hook = hook_for(out, model)
    optimizer.zero_grad()
    scaler.scale(loss_of(model)).backward()
    used = {name: value / 4096.0 for name, value in seen(model).items()}
    scaler.step(optimizer)
    scaler.update()
    hook.close()
    assert of(rows("parameters")[0], "gradient_l2") == pytest.approx(used, rel=1e-5)
    assert rows("steps")[0]["series/skipped"] == 0.0


def test_parameters_without_gradients_and_those_of_no_model_are_left_out(out, rows):
    model = small()
    model[0].requires_grad_(False)
    loose = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([*model.parameters(), loose], lr=0.05)
    hook = hook_for(out, model)
    for _ in range(2):
        optimizer.zero_grad()
        (loss_of(model) + (loose - 1).square().sum()).backward()
        optimizer.step()
    hook.close()
    for row in rows("parameters"):
        assert {*of(row, "gradient_l2")} == {f"series/gradient_l2/Sequential_2.{name}" for name in ("weight", "bias")}
    whole = math.hypot(*seen(model).values(), norm(loose.grad))
    assert rows("steps")[-1]["series/gradient_l2"] == pytest.approx(whole, rel=1e-5)


def test_optimizers_that_take_turns_have_their_parameters_in_one_row(out, rows):
    one, other = small(), nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.05) for model in (one, other)]
    hook = hook_for(out, one, other)
    for _ in range(3):
        used = []
        for optimizer, model in zip(optimizers, (one, other), strict=True):
            optimizer.zero_grad()
            other(one(torch.randn(6, 5))).square().mean().backward()
            used += [norm(parameter.grad) for parameter in model.parameters()]
            optimizer.step()
    hook.close()
    last = {row["step"]: row for row in rows("parameters")}[2]
    assert [*of(last, "gradient_l2").values()] == pytest.approx(used, rel=1e-5)
    totals = {row["step"]: row["series/gradient_l2"] for row in rows("steps")}
    assert totals[2] == pytest.approx(math.hypot(*used), rel=1e-5)


def test_an_optimizer_inside_of_another_one_counts_once(out, rows):
    class Outer(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure=None):
            self.inner.step()

    model = small()
    optimizer = Outer(torch.optim.SGD(model.parameters(), lr=0.05))
    hook = hook_for(out, model)
    found = train(model, optimizer, 3)
    hook.close()
    last = {row["step"]: row for row in rows("steps")}
    totals = [math.hypot(*gradients.values()) for gradients, _ in found]
    assert [row["series/gradient_l2"] for row in last.values()] == pytest.approx(totals, rel=1e-5)


def test_gradients_that_are_not_finite_have_such_norms(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    for value in (math.inf, math.nan, 1.0):
        optimizer.zero_grad()
        loss_of(model).backward()
        model[0].bias.grad[1] = value
        optimizer.step()
        with torch.no_grad():
            model[0].bias.zero_()
    hook.close()
    name = "series/gradient_l2/Sequential_0.bias"
    first, second, third = (row[name] for row in rows("parameters"))
    assert first == math.inf
    assert math.isnan(second)
    assert 1 <= third < 3


def test_large_parameters_are_not_copied(out, rows, monkeypatch):
    monkeypatch.setattr(norms, "MOST_COPIED", 100)
    model = small()
    hook = hook_for(out, model)
    train(model, torch.optim.SGD(model.parameters(), lr=0.05), 3)
    hook.close()
    assert all("series/update_l2" not in row for row in rows("steps"))
    assert all("series/gradient_l2" in row for row in rows("steps"))


def test_sparse_gradients_are_left_out(out, rows):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.tensor([1, 2])).square().mean().backward()
        optimizer.step()
    hook.close()
    for row in rows("parameters"):
        assert {*of(row, "gradient_l2")} == {f"series/gradient_l2/Sequential_1.{name}" for name in ("weight", "bias")}


def run(capture, out, dtype=torch.float32, clip=None, steps=6):
    """Train with and without the hook; return the bits of the weights, the random state and the losses."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.2), nn.Tanh(), nn.Linear(4, 3)).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    hook = hook_for(out, model) if capture else None
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 5, dtype=dtype)).square().mean()
        loss.backward()
        if clip is not None:
            losses.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        losses.append(loss.item())
    if hook is not None:
        hook.close()
    return [parameter.detach().clone() for parameter in model.parameters()], torch.get_rng_state(), losses


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("clip", [None, 0.01])
def test_a_training_has_the_same_bits_with_the_series(out, rows, dtype, clip):
    plain, plain_state, plain_losses = run(False, out, dtype, clip)
    weights, state, losses = run(True, out, dtype, clip)
    assert all(torch.equal(one, other) for one, other in zip(plain, weights, strict=True))
    assert torch.equal(plain_state, state)
    assert plain_losses == losses
    assert len(rows("parameters")) == 6


def test_the_programs_own_functions_stand_where_they_stood(out):
    before = torch._foreach_norm
    run(True, out, clip=0.1)
    assert torch._foreach_norm is before


def test_a_clip_that_raises_is_the_programs(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    hook = hook_for(out, model)
    before = torch._foreach_norm
    loss_of(model).backward()
    model[0].bias.grad[0] = math.nan
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    assert torch._foreach_norm is before
    with pytest.raises(TypeError):
        nn.utils.clip_grad_norm_(model.parameters())
    optimizer.step()
    hook.close()


SHAPES = st.lists(st.integers(0, 5), min_size=0, max_size=3)


@settings(max_examples=80, deadline=None)
@given(
    kinds=st.lists(st.tuples(SHAPES, st.sampled_from(DTYPES), st.booleans(), st.sampled_from([1e-25, 1.0, 1e25]))),
    seed=st.integers(0, 1000),
)
def test_lengths_are_those_of_each_tensor_in_float64(kinds, seed):
    torch.manual_seed(seed)
    tensors = []
    for shape, dtype, is_turned, factor in kinds:
        factor = 1.0 if dtype is torch.float16 else factor
        tensor = (torch.randn(shape) * factor).to(dtype)
        tensors.append(tensor.T if is_turned and tensor.dim() == 2 else tensor)
    found = lengths_of(tensors)
    values = {place: value for part in found for place, value in zip(*part, strict=True)}
    assert [values[place] for place in range(len(tensors))] == pytest.approx([norm(one) for one in tensors], rel=1e-3)
    whole = together(found)
    assert not tensors or whole == pytest.approx(math.hypot(*map(norm, tensors)), rel=1e-3)


class Own(torch.Tensor):
    """A tensor whose operations are the program's."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(function)


def test_tensors_of_other_kinds_are_none_that_are_measured():
    others = [
        torch.zeros(3).to_sparse(),
        torch.zeros(3, device="meta"),
        torch.zeros(3, dtype=torch.int64),
        torch.zeros(3, dtype=torch.complex64),
        torch.zeros(3).as_subclass(Own),
        None,
    ]
    parameters = [torch.zeros(1) for _ in others]
    given_to = iter(others)
    assert measured_parts(parameters, lambda _: next(given_to)) == [None] * len(others)
