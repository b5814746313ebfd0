"""LossNotDecreasing, on a loss that rises, and as smdebug documents it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugValueError
from smd_agent.rules import LossNotDecreasing
from smd_agent.rules.finding import Severity

SETS = ("train-rmse", "test-rmse")


def descent(rate, count=40, noise=0.3):
    """A regression that is learned, or unlearned by steps in the wrong direction."""

    def training(capture):
        model, truth = nn.Linear(6, 1), torch.randn(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), abs(rate), maximize=rate < 0)
        for _ in range(count):
            x = torch.randn(32, 6)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x @ truth + noise * torch.randn(32, 1)).backward()
            optimizer.step()

    return training


def test_a_loss_of_the_wrong_sign(trained):
    run = trained(descent(-0.02))
    (found,) = run.findings(LossNotDecreasing())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.last_step, found.steps) == (0, 39, 40)
    trial = run.trial()
    losses = [float(trial.tensor("Loss_output_0").value(step)) for step in trial.steps()]
    assert found.evidence["first"] == pytest.approx(sorted(losses[:8])[3] / 2 + sorted(losses[:8])[4] / 2)
    assert found.evidence["last"] > found.evidence["first"]


@pytest.mark.parametrize("calls, every, finds", [(1, 1, False), (3, 1, False), (1, 2, True), (3, 9, True)])
def test_the_loss_of_a_model_that_acts_may_rise(trained, calls, every, finds):
    """The better it acts, the larger is what it has to tell beforehand; an evaluation comes now and then."""

    def training(capture):
        model = nn.Linear(6, 1)
        hook = capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for step in range(40):
            hook.set_mode(ModeKeys.EVAL)
            with torch.no_grad():
                for _ in range(calls if not step % every else 0):
                    model(torch.randn(1, 6))
            hook.set_mode(ModeKeys.TRAIN)
            x = torch.randn(32, 6)
            optimizer.zero_grad()
            functional.mse_loss(model(x), x[:, :1] * (1 + step)).backward()
            optimizer.step()

    assert bool(trained(training).findings(LossNotDecreasing())) is finds


@pytest.mark.parametrize("freezes, rate, finds", [(True, 0.02, 0), (False, 0.02, 1), (True, -0.02, 1)])
def test_steps_that_train_other_parameters_are_a_training_of_their_own(trained, freezes, rate, finds):
    def training(capture):
        torch.manual_seed(0)
        model, truth = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 1)), torch.randn(6, 1)
        capture(model)
        for size in (1, 9):
            slower = 1 if rate < 0 else size**2
            optimizer = torch.optim.SGD(model.parameters(), abs(rate) / slower, maximize=rate < 0 and size > 1)
            for _ in range(30):
                x = torch.randn(32, 6)
                optimizer.zero_grad()
                functional.mse_loss(model(x), size * x @ truth).backward()
                optimizer.step()
            model[0].requires_grad_(not freezes)

    assert len(trained(training).findings(LossNotDecreasing())) == finds


def multiplied(factor, rate=0.02, added=0.0, count=40):
    """The gradients are those of a loss module's value times a factor, which is a second loss of the step."""

    def training(capture):
        model, truth, loss = nn.Linear(6, 1), torch.randn(6, 1), nn.MSELoss()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), rate)
        for _ in range(count):
            x = torch.randn(32, 6)
            optimizer.zero_grad()
            trained = factor * loss(model(x), x @ truth + 0.3 * torch.randn(32, 1)) + added * torch.randn(())
            trained.backward()
            optimizer.step()

    return training


def test_losses_of_which_each_is_a_multiple_of_the_other_are_one(trained):
    run = trained(multiplied(-1.0))
    assert len(run.trial().tensor_names(collection="losses")) == 2
    (found,) = run.findings(LossNotDecreasing())
    assert found.tensor == "MSELoss_output_0"
    assert found.cause == "What is made smaller is this loss with the other sign"
    for factor in (1.0, 0.25):
        assert trained(multiplied(factor)).findings(LossNotDecreasing()) == []


@pytest.mark.parametrize("rises, finds", [("train-rmse", ["train-rmse"]), ("test-rmse", [])])
def test_losses_of_evaluation_sets_are_left_out(written, rises, finds):
    run = written(losses="rmse$")
    for step in range(20):
        up, down = 1.0 + step, 1 / (1.0 + step)
        run.step(ModeKeys.GLOBAL, **{name.replace("-", "__"): up if name == rises else down for name in SETS})
    assert [one.tensor for one in run.ended().findings(LossNotDecreasing())] == finds


def test_losses_that_are_no_multiples_are_left_alone(trained):
    # As of a critic and a generator: what is added to the one is not in the other.
    assert trained(multiplied(-1.0, added=0.01)).findings(LossNotDecreasing()) == []


@pytest.mark.parametrize("rate, noise", [(0.02, 0.3), (0.1, 5.0), (1e-4, 5.0)])
def test_a_loss_that_falls_or_stays(trained, rate, noise):
    assert trained(descent(rate, noise=noise)).findings(LossNotDecreasing()) == []


def test_a_loss_that_falls_and_is_lost_again(trained):
    def training(capture):
        model, truth = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)), torch.randn(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(60):
            x = torch.randn(32, 6)
            if step == 40:
                model[2].weight.data *= 0.4
                optimizer.param_groups[0]["lr"] = 1e-4
            optimizer.zero_grad()
            functional.mse_loss(model(x), x @ truth).backward()
            optimizer.step()

    (found,) = trained(training).findings(LossNotDecreasing())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.last_step, found.steps) == (40, 59, 20)
    assert found.evidence["best"] < found.evidence["first"]
    assert found.cause.startswith("The training had learned and has lost it again")


def course(written, losses):
    run = written(losses="^loss$")
    for loss in losses:
        run.step(loss=loss)
    return run.ended().findings(LossNotDecreasing())


FALLEN = [*(1.0 - 0.09 * step for step in range(10)), *[0.1] * 20]


@pytest.mark.parametrize(
    "last, finds",
    [
        # The first fifth has the middle 0.73, so that the fall is 0.63; ten times the best is 1.
        ([0.1 + 0.63 * 0.81] * 8, True),
        ([0.1 + 0.63 * 0.79] * 8, False),
        # A fifth of 38 is 7.
        ([0.7] * 7, True),
        ([0.7] * 6, False),
        ([0.7] * 7 + [0.1], False),
        ([0.7] * 3 + [0.1] + [0.7] * 4, False),
    ],
)
def test_how_much_is_lost_and_for_how_long(written, last, finds):
    assert bool(course(written, [*FALLEN, *last])) == finds


@pytest.mark.parametrize("best, last, finds", [(0.01, 0.16, True), (0.01, 0.15, False), (0.03, 0.29, False)])
def test_a_loss_that_is_many_times_its_best(written, best, last, finds):
    """It has fallen from 0.73: of that a fifth has to be given back."""
    assert bool(course(written, [*FALLEN[:10], *[best] * 20, *[last] * 8])) == finds


@pytest.mark.parametrize("times, says_so", [(110, True), (90, False)])
def test_a_loss_that_diverges_and_stays_finite(written, times, says_so):
    (found,) = course(written, [*[1.0] * 8, *(1.0 + step for step in range(8)), *[float(times)] * 8])
    assert found.cause.startswith("The training diverged") == says_so


def test_what_is_kept_of_many_steps_is_bounded(trained):
    run = trained(descent(-0.001, 900))
    rule = LossNotDecreasing().fresh()
    trial = run.trial()
    old = LossNotDecreasing(trial, num_steps=None)
    for step in trial.steps():
        old.invoke_at_step(step)
    (part,) = old._parts.values()
    (course,) = part._courses.values()
    assert len(course._losses.items()) <= 256
    assert rule.num_steps is None
    (found,) = run.findings(LossNotDecreasing())
    assert found.steps == 900


@pytest.mark.parametrize("every, first, then", [(3, 12, 24), (1, 10, 20), (10, 10, 20)])
def test_as_it_is_documented(trained, every, first, then):
    trial = trained(descent(-0.01), every=every).trial()
    rule, met = LossNotDecreasing(base_trial=trial, use_losses_collection="True"), []
    for step in trial.steps():
        met.extend([step] * rule.invoke_at_step(step))
    # Each step is compared with the newest one that is ten steps back or more, and ten steps later the next.
    assert met[:2] == [first, then]
    falling = trained(descent(0.05, noise=0.0), every=every).trial()
    rule = LossNotDecreasing(base_trial=falling)
    assert [step for step in falling.steps() if rule.invoke_at_step(step)] == []


def test_the_least_fall_and_the_modes(trained):
    trial = trained(descent(0.05, noise=0.0)).trial()
    assert [step for step in trial.steps() if LossNotDecreasing(trial, diff_percent=0.1).invoke_at_step(step)] == []
    demanding = LossNotDecreasing(trial, diff_percent="99.999")
    assert next(step for step in trial.steps() if demanding.invoke_at_step(step)) == 10
    elsewhere = LossNotDecreasing(trial, diff_percent="99.999", mode="EVAL")
    assert [step for step in trial.steps() if elsewhere.invoke_at_step(step)] == []


@pytest.mark.parametrize(
    "wrong",
    [{"mode": "LAST"}, {"diff_percent": "0"}, {"diff_percent": 100}, {"increase_threshold_percent": "-1"}],
)
def test_values_that_are_documented_as_wrong(wrong):
    (name,) = wrong
    with pytest.raises(SMDebugValueError, match=f"^{name} is "):
        LossNotDecreasing(**wrong)


@pytest.mark.parametrize("mode", ["train", ModeKeys.TRAIN])
def test_a_mode_by_any_name(trained, mode):
    trial = trained(descent(-0.01)).trial()
    rule = LossNotDecreasing(trial, mode=mode)
    assert next(step for step in trial.steps() if rule.invoke_at_step(step)) == 10


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(LossNotDecreasing()))} == {}


def two_tasks(models):
    """Train a model until its loss is small, and then one on a task whose loss is large."""

    def training(capture):
        capture(*dict.fromkeys(models))
        for model, size in zip(models, (1.0, 10.0), strict=True):
            optimizer = torch.optim.SGD(model.parameters(), 0.05)
            for _ in range(30):
                x = torch.randn(16, 6)
                optimizer.zero_grad()
                functional.mse_loss(model(x), size * (x.sum(1, True) + 10)).backward()
                optimizer.step()

    return training


def test_another_model_is_another_training(trained):
    assert trained(two_tasks([nn.Linear(6, 1), nn.Linear(6, 1)])).findings(LossNotDecreasing()) == []
    assert len(trained(two_tasks([nn.Linear(6, 1)] * 2)).findings(LossNotDecreasing())) == 1
