"""The series of PyTorch: a row for each training step, saved or not, and a training that is none the wiser."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.compare import assert_untouched, run_both
from harness.pytorch_series import SELDOM, hook_for, loss_of, small
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import smd_agent.pytorch as smd
from smd_agent.pytorch.optimizer_watch import updates


def losses(rows):
    return [row.get("series/loss") for row in rows("steps")]


def steps(rows):
    return [row["step"] for row in rows("steps")]


def test_the_loss_of_every_step_is_the_programs(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    hook = hook_for(out, model)
    printed, rates = [], []
    for _ in range(7):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
        printed.append(loss.item())
    hook.close()
    assert losses(rows) == printed
    assert steps(rows) == [*range(7)]
    assert [row["series/learning_rate"] for row in rows("steps")] == rates
    assert all(0 < row["series/seconds"] < 10 for row in rows("steps")[1:])
    assert "series/seconds" not in rows("steps")[0]
    assert "series/loss_scale" not in rows("steps")[0]


def test_losses_of_accumulated_passes_are_added_up(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    printed = []
    for _ in range(4):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(3):
            loss = loss_of(model) / 3
            loss.backward()
            total += loss.item()
        optimizer.step()
        printed.append(total)
    hook.close()
    assert losses(rows) == printed


def test_several_roots_of_one_pass_are_added_up_and_tensors_of_more_elements_are_no_losses(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    first, second = loss_of(model), model(torch.randn(2, 5)).square().mean()
    torch.autograd.backward([first, second])
    optimizer.step()
    model(torch.randn(2, 5)).backward(torch.ones(2, 3))
    optimizer.step()
    torch.autograd.backward(tensors=(first := loss_of(model),))
    optimizer.step()
    hook.close()
    assert losses(rows) == [rows("steps")[0]["series/loss"], None, first.item()]
    assert losses(rows)[0] == pytest.approx(first.item(), abs=10)


def test_optimizers_that_take_turns_have_one_row_for_a_round(out, rows):
    generator, critic = small(), nn.Linear(3, 1)
    optimizers = [torch.optim.Adam(model.parameters(), lr=rate) for model, rate in ((critic, 0.1), (generator, 0.2))]
    hook = hook_for(out, generator, critic)
    printed = []
    for _ in range(5):
        total = 0.0
        for optimizer in optimizers:
            optimizer.zero_grad()
            loss = critic(generator(torch.randn(6, 5))).square().mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        printed.append(total)
    hook.close()
    # A step that turns out to go on has its row again, complete.
    last = {row["step"]: row for row in rows("steps")}
    assert [*last] == [*range(5)]
    assert [row["series/loss"] for row in last.values()] == printed
    assert {row["series/learning_rate"] for row in last.values()} == {0.1}


def test_a_scalers_losses_are_those_before_scaling_and_updates_that_it_skips_are_told(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=3.0, growth_interval=2)
    hook = hook_for(out, model)
    printed, scales = [], []
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_of(model) * (math.inf if step == 2 else 1.0)
        scaler.scale(loss).backward()
        scales.append(scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
        printed.append(loss.item())
    hook.close()
    assert losses(rows) == printed
    assert [row["series/loss_scale"] for row in rows("steps")] == scales
    assert [row["series/skipped"] for row in rows("steps")] == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert steps(rows) == [*range(6)]


def test_scaled_losses_that_are_added_up_are_divided_by_their_scale(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    hook = hook_for(out, model)
    one, other = loss_of(model), loss_of(model)
    (scaler.scale(one) + scaler.scale(other)).backward()
    scaler.step(optimizer)
    hook.close()
    assert losses(rows) == [pytest.approx(one.item() + other.item())]


@pytest.mark.parametrize("make", [torch.optim.LBFGS, torch.optim.Adam])
def test_the_first_loss_of_a_closure_is_the_steps(out, rows, make):
    model = small()
    optimizer = make(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    batches = [(torch.randn(6, 5), torch.randint(0, 3, (6,))) for _ in range(4)]
    printed = []
    for x, y in batches:

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        printed.append(optimizer.step(closure).item())
    hook.close()
    assert losses(rows) == printed


def test_an_update_that_fails_in_its_closure_leaves_the_following_steps_right(out, rows):
    model = small()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)

    def closure():
        loss_of(model).backward()
        raise KeyError("the program's")

    for _ in range(2):
        loss_of(model).backward()
        plain.step()
    with pytest.raises(KeyError):
        optimizer.step(closure)
    plain.step()
    total = 0.0
    for _ in range(3):
        loss = loss_of(model)
        loss.backward()
        total += loss.item()
    plain.step()
    hook.close()
    assert losses(rows)[-1] == pytest.approx(total)


def test_a_training_without_an_optimizer_has_a_row_for_each_pass(out, rows):
    model = nn.Linear(4, 2)
    hook = hook_for(out, model)
    hook.steps.pass_ends_step = True
    printed = []
    for _ in range(5):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        printed.append(loss.item())
    hook.close()
    assert losses(rows) == printed
    assert steps(rows) == [*range(5)]


def test_evaluations_have_no_row_and_end_no_step(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=SELDOM)
    hook.follow_calls()
    hook.register_module(model)
    printed = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = loss_of(model)
        model.eval()
        with torch.no_grad():
            model(torch.randn(2, 5))
        model.train()
        loss.backward()
        optimizer.step()
        printed.append(loss.item())
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                model(torch.randn(2, 5))
        model.train()
    hook.close()
    assert losses(rows) == printed
    assert {row["mode"] for row in rows("steps")} == {"TRAIN"}
    assert [row["mode_step"] for row in rows("steps")] == [*range(4)]


def test_each_call_is_a_step_where_they_are_counted_so(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=SELDOM)
    hook.count_forwards()
    hook.register_module(model)
    printed = []
    for i in range(6):
        loss = loss_of(model)
        loss.backward()
        printed.append(loss.item())
        if i % 2:
            optimizer.step()
    hook.close()
    assert losses(rows) == printed
    assert steps(rows) == [*range(6)]


def test_passes_within_a_pass_are_no_roots(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    printed = []
    for _ in range(3):
        optimizer.zero_grad()
        hidden = checkpoint(model[0], torch.randn(6, 5, requires_grad=True), use_reentrant=True)
        loss = model[2](hidden).square().mean() + 0 * loss_of(model)
        loss.backward()
        optimizer.step()
        printed.append(loss.item())
    hook.close()
    assert losses(rows) == printed


def test_a_mode_of_the_program_counts_no_function_of_ours_and_no_pass_twice(out, rows):
    class Counting(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen.append(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    def seen(captured):
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = hook_for(f"{out}/{captured}", model) if captured else None
        for counting in (Counting(), Counting()):
            loss = loss_of(model)
            with counting:
                torch.autograd.backward(loss)
            optimizer.step()
        if hook is not None:
            hook.close()
            assert losses(rows)[-1] == loss.item()
        return counting.seen

    assert seen(False) == seen(True)


def test_a_profiler_of_the_program_sees_nothing_of_unsaved_steps(out):
    def profiled(captured):
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        hook = hook_for(out, model) if captured else None
        for _ in range(2):
            loss_of(model).backward()
            optimizer.step()
        with torch.profiler.profile() as profile:
            loss_of(model).backward()
            optimizer.step()
            torch.ones(3)
        if hook is not None:
            hook.close()
        return {event.key: event.count for event in profile.key_averages()}

    assert profiled(False) == profiled(True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_losses_of_all_dtypes_and_shapes_are_read(out, rows, dtype, shape):
    model = nn.Linear(3, 1).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hook = hook_for(out, model)
    values = []
    for _ in range(2):
        loss = model(torch.randn(4, 3, dtype=dtype)).square()[2].reshape(shape)
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    hook.close()
    assert losses(rows) == values


def test_losses_that_are_not_finite_are_numbers(out, rows):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    for factor in (math.nan, math.inf, -math.inf):
        (loss_of(model) * factor).backward()
        optimizer.zero_grad()
        optimizer.step()
    hook.close()
    assert math.isnan(losses(rows)[0])
    assert losses(rows)[1:] == [math.inf, -math.inf]


def test_a_thread_that_trains_beside_gives_no_losses(out, rows):
    model, other = small(), small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model, other)
    printed, others = [], []

    def train(net, update, into):
        loss = loss_of(net)
        loss.backward()
        update.step()
        into.append(loss.item())

    def beside():
        own = torch.optim.SGD(other.parameters(), lr=0.1)
        for _ in range(3):
            train(other, own, others)

    for _ in range(2):
        train(model, optimizer, printed)
        hook.threads.calls_models()
        thread = threading.Thread(target=beside)
        hook.threads._callers.add(-1)
        thread.start()
        thread.join()
    hook.close()
    assert set(printed) <= set(losses(rows))


def test_a_failure_costs_the_series_alone(out, rows, monkeypatch, capfd):
    from smd_agent import guard
    from smd_agent.pytorch.series.every_step import EveryStep

    monkeypatch.setattr(guard, "strict", False)
    monkeypatch.setattr(EveryStep, "_takes", lambda self: 1 / 0)
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["gradients"])
    hook.register_module(model)
    for _ in range(8):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    hook.close()
    trial = smd.create_trial(out)
    assert trial.steps() == [*range(8)]
    assert trial.tensor("gradient/Sequential_0.weight").steps() == [*range(8)]
    said = capfd.readouterr().err
    assert "rows of the series" in said
    assert "again and again" in said
    assert rows("steps") == []


SHORT = """
import time, torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(STEPS):
    optimizer.zero_grad()
    loss = net(torch.full((2, 4), 1.0 + step / 1000)).square().mean()
    loss.backward()
    optimizer.step()
    time.sleep(SECONDS)
    print(repr(loss.item()))
"""


def test_a_smaller_budget_gives_fewer_rows(runner):
    script = runner.write(SHORT.replace("STEPS", "3000").replace("SECONDS", "0"))
    config = {"HookParameters": {"save_interval": 10**6, "budget": 0.01}}
    both = run_both(runner, script, config=config, strict=True)
    assert_untouched(both)
    # Those in which norms are measured, as in the first thirty, are not counted; the usual budget has a hundred more.
    assert 1000 <= len(both.trial.tensor("series/loss").steps()) < 1060


def test_pauses_go_by_what_a_row_takes(out, rows, monkeypatch):
    told = []
    monkeypatch.setattr("smd_agent.core.budget.Rests.after", lambda rests, seconds, others, own: told.append(own) or 0)
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook_for(out, model)
    for _ in range(60):
        loss_of(model).backward()
        optimizer.step()
    assert told
    assert all(0.0 < own < 1.0 for own in told)


def test_an_optimizer_that_is_made_in_a_pause_leaves_no_row_without_a_loss(out, rows, monkeypatch):
    monkeypatch.setattr("smd_agent.core.budget.Rests.after", lambda rests, seconds, others, own=0.0: 3)
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hook_for(out, model)
    for step in range(60):
        if step in (43, 53):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    hook.close()
    assert 30 < len({*steps(rows)}) < 60
    assert None not in losses(rows)


def test_a_pause_that_a_further_model_ends_counts_into_no_step(out, rows, monkeypatch):
    now = 0.0
    monkeypatch.setattr("smd_agent.framework.series_rows.perf_counter", lambda: now)
    monkeypatch.setattr("smd_agent.core.budget.Rests.after", lambda rests, seconds, others, own=0.0: 3)
    model, other = small(), small()
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
    hook = hook_for(out, model)
    registered = False
    for step in range(60):
        if step > 40 and updates.rest == 1 and not registered:
            hook.register_module(other)
            registered = True
        optimizer.zero_grad()
        (loss_of(model) + loss_of(other)).backward()
        # So short that norms are measured seldom.
        now += 2.0**-13
        optimizer.step()
    hook.close()
    assert registered
    lasted = [row.get("series/seconds") for row in rows("steps")[1:]]
    assert {*lasted} == {2.0**-13, None}
    assert lasted.count(None) == 1


@pytest.mark.parametrize("steps, seconds, all_of_them", [(6000, 0, False), (1050, 0.01, True)])
def test_between_the_rows_of_short_steps_others_rest(runner, steps, seconds, all_of_them):
    script = runner.write(SHORT.replace("STEPS", str(steps)).replace("SECONDS", str(seconds)))
    both = run_both(runner, script, config={"HookParameters": {"save_interval": 10**6}}, strict=True)
    assert_untouched(both)
    loss = both.trial.tensor("series/loss")
    printed = [float(line) for line in both.agent.stdout.split()]
    found = loss.steps()
    assert found[:1000] == [*range(1000)]
    assert (len(found) == steps) is all_of_them
    assert len(found) < 1000 + steps / 4 or all_of_them
    for step in found:
        assert loss.value(step)[0] == printed[step]
    # The time of a step is that of this one alone.
    table = both.trial.series()["steps"]
    lasted = table["series/seconds"]
    assert np.nanmedian(lasted[1000:]) < 2 * np.nanmedian(lasted[1:1000])
