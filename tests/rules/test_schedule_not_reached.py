"""ScheduleNotReached, on schedules that are stepped too seldom, and on those that people use."""

from __future__ import annotations

import functools
import math

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from smd_agent.rules import ScheduleNotReached
from smd_agent.rules.finding import Severity

EPOCHS, BATCHES = 5, 12
UPDATES = EPOCHS * BATCHES


def one_cycle(optimizer, length=UPDATES):
    return lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=length)


def cosine(optimizer, length=UPDATES):
    return lr_scheduler.CosineAnnealingLR(optimizer, T_max=length)


def linear(optimizer, length=UPDATES):
    return lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=length)


def polynomial(optimizer, length=UPDATES):
    return lr_scheduler.PolynomialLR(optimizer, total_iters=length)


def in_turn(optimizer, length=UPDATES):
    parts = [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=8), cosine(optimizer, length - 8)]
    return lr_scheduler.SequentialLR(optimizer, parts, milestones=[8])


def of_transformers(optimizer, length=UPDATES):
    def falling(step, *, num_training_steps):
        return max(0.0, 1 - step / num_training_steps)

    return lr_scheduler.LambdaLR(optimizer, functools.partial(falling, num_training_steps=length))


MAKERS = (one_cycle, cosine, linear, polynomial, in_turn, of_transformers)


def stepped(make, by, epochs=EPOCHS, batches=BATCHES, passes=1):
    """Train with a schedule that is stepped at each ``batch``, each ``epoch``, or ``never``."""

    def training(capture):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = make(optimizer)
        for _ in range(epochs):
            for _ in range(batches):
                optimizer.zero_grad()
                for _ in range(passes):
                    model(torch.randn(16, 6)).pow(2).mean().backward()
                optimizer.step()
                if by == "batch":
                    schedule.step()
            if by == "epoch":
                schedule.step()
        # It is looked for when the first step is saved, and referred to weakly.
        training.schedule = schedule

    return training


@pytest.mark.parametrize("make", MAKERS)
def test_stepped_once_an_epoch(trained, make):
    (found,) = trained(stepped(make, "epoch")).findings(ScheduleNotReached())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/optimizer/SGD/schedule_steps")
    assert (found.first_step, found.last_step, found.steps) == (0, UPDATES - 1, UPDATES)
    assert found.evidence == {"schedule_length": UPDATES, "schedule_steps": EPOCHS - 1, "updates": UPDATES}
    assert "once an epoch" in found.cause


def test_never_stepped(trained):
    (found,) = trained(stepped(one_cycle, "never")).findings(ScheduleNotReached())
    assert found.evidence["schedule_steps"] == 0
    assert "never stepped" in found.cause


def test_few_steps_that_are_saved_are_enough(trained):
    (found,) = trained(stepped(one_cycle, "epoch"), every=13).findings(ScheduleNotReached())
    assert (found.first_step, found.last_step, found.steps) == (0, 52, 5)
    assert found.evidence["updates"] >= 53


@pytest.mark.parametrize("make", MAKERS)
def test_stepped_at_each_batch(trained, make):
    assert trained(stepped(make, "batch")).findings(ScheduleNotReached()) == []


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epochs", [1, EPOCHS])
def test_a_run_that_ended_early(trained, make, epochs):
    long = functools.partial(make, length=10 * UPDATES)
    assert trained(stepped(long, "batch", epochs=epochs)).findings(ScheduleNotReached()) == []


@pytest.mark.parametrize("make", [cosine, linear, polynomial, one_cycle])
@pytest.mark.parametrize("length, epochs", [(24, 24), (30, 24), (200, 8), (40, 12)])
def test_a_schedule_that_counts_epochs(trained, make, length, epochs):
    by_epoch = stepped(functools.partial(make, length=length), "epoch", epochs=epochs, batches=8)
    assert trained(by_epoch).findings(ScheduleNotReached()) == []


def test_gradients_that_are_accumulated(trained):
    slow = stepped(functools.partial(cosine, length=UPDATES), "batch", passes=4)
    assert trained(slow).findings(ScheduleNotReached()) == []


# Before the last update all epochs but the last one have been made: 11 of 60 steps, and 14.
@pytest.mark.parametrize("epochs, share, findings", [(12, 0.2, 1), (12, 0.18, 0), (15, 0.2, 0), (15, 0.24, 1)])
def test_the_share_of_the_schedule_that_was_made(trained, epochs, share, findings):
    run = trained(stepped(cosine, "epoch", epochs=epochs, batches=60 // epochs))
    assert len(run.findings(ScheduleNotReached(share=share))) == findings


@pytest.mark.parametrize("length, findings", [(54, 0), (55, 1), (66, 1), (67, 0)])
def test_how_far_the_length_may_be_from_the_updates(trained, length, findings):
    by_epoch = stepped(functools.partial(cosine, length=length), "epoch")
    assert len(trained(by_epoch).findings(ScheduleNotReached())) == findings


@pytest.mark.parametrize("length, findings", [(19, 0), (20, 1)])
def test_the_shortest_schedule(trained, length, findings):
    by_epoch = stepped(functools.partial(cosine, length=length), "epoch", epochs=2, batches=length // 2)
    assert len(trained(by_epoch).findings(ScheduleNotReached())) == findings


WARM = 25


def warmed(step, warm, length):
    return (step + 1) / warm if step < warm else max(0.0, (length - step) / (length - warm))


def of_closure(optimizer, length=UPDATES):
    return lr_scheduler.LambdaLR(optimizer, lambda step: warmed(step, WARM, length))


def of_attribute(optimizer, length=UPDATES):
    settings = type("Settings", (), {})()
    settings.total, settings.size = length, 16
    return lr_scheduler.LambdaLR(optimizer, lambda step: warmed(step, WARM, settings.total))


def of_default(optimizer, length=UPDATES):
    def falling(step, total=length):
        return 1 - step / total

    return lr_scheduler.LambdaLR(optimizer, falling)


def of_method(optimizer, length=UPDATES):
    class Plan:
        def __init__(self):
            self.total = length

        def at(self, step):
            return 0.5 * (1 + math.cos(math.pi * step / self.total))

    return lr_scheduler.LambdaLR(optimizer, Plan().at)


def of_part(optimizer, length=UPDATES):
    return lr_scheduler.LambdaLR(optimizer, functools.partial(warmed, warm=WARM, length=length))


FUNCTIONS = (of_closure, of_attribute, of_default, of_method, of_part)


@pytest.mark.parametrize("make", FUNCTIONS)
def test_a_function_that_is_stepped_once_an_epoch(trained, make):
    (found,) = trained(stepped(make, "epoch")).findings(ScheduleNotReached())
    assert found.evidence == {"schedule_length": UPDATES, "schedule_steps": EPOCHS - 1, "updates": UPDATES}


@pytest.mark.parametrize("make", FUNCTIONS)
@pytest.mark.parametrize("by, length", [("batch", UPDATES), ("batch", 10 * UPDATES), ("epoch", 2 * UPDATES)])
def test_a_function_that_is_not_as_long_as_the_updates(trained, make, by, length):
    run = trained(stepped(functools.partial(make, length=length), by))
    assert run.findings(ScheduleNotReached()) == []


def in_updates(epoch, length=UPDATES, batches=BATCHES):
    """A schedule over updates, which is told of epochs and knows how long these are."""
    return max(0.0, 1 - epoch * batches / length)


def warm_in_updates(epoch, warm=2 * BATCHES, length=UPDATES):
    return min(1.0, (epoch + 1) * BATCHES / warm)


FUNCTIONS_OF_EPOCHS = {
    "in updates": in_updates,
    "warm-up": warm_in_updates,
    "steps": lambda epoch, every=UPDATES: 0.1 ** (epoch // every),
    "epochs": lambda epoch, epochs=EPOCHS: 1 - epoch / epochs,
    "half, then all": lambda epoch, warm=2, updates=UPDATES: 0.5 if epoch < warm else 1.0,
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_EPOCHS)
def test_functions_of_epochs(trained, name):
    run = trained(stepped(lambda optimizer: lr_scheduler.LambdaLR(optimizer, FUNCTIONS_OF_EPOCHS[name]), "epoch"))
    assert run.findings(ScheduleNotReached()) == []


ENDLESS = {
    "restarts": lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=UPDATES),
    "steps": lambda optimizer: lr_scheduler.StepLR(optimizer, 2),
    "milestones": lambda optimizer: lr_scheduler.MultiStepLR(optimizer, [UPDATES]),
    "a function": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_schedules_without_an_end(trained, name):
    run = trained(stepped(ENDLESS[name], "epoch"))
    assert run.verdict(ScheduleNotReached()).findings == []


def test_a_schedule_that_begins_again_in_a_training_that_goes_on(trained):
    def later(capture):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        later.schedules = []
        # The second one is as long as both trainings together.
        for length, updates in ((30, 30), (60, 30)):
            schedule = cosine(optimizer, length)
            later.schedules = [schedule]
            for _ in range(updates):
                optimizer.zero_grad()
                model(torch.randn(16, 6)).pow(2).mean().backward()
                optimizer.step()
                schedule.step()

    assert trained(later).verdict(ScheduleNotReached()).findings == []


def test_a_run_that_goes_on(trained):
    """In the middle of a training by epochs, its schedule may be as long as there are updates so far."""
    run = trained(stepped(cosine, "epoch"))
    trial = run.trial()
    trial.step_table.ended = False
    rule = ScheduleNotReached(trial)
    for step in trial.steps():
        rule.invoke_at_step(step)
    (part,) = rule._parts.values()
    part.end()
    assert part.findings == []
    trial.step_table.ended = True
    part.end()
    assert len(part.findings) == 1


def test_clean_trainings_are_silent(clean):
    verdicts = {name: run.verdict(ScheduleNotReached()) for name, run in clean.items()}
    assert {name: verdict.findings for name, verdict in verdicts.items() if verdict.findings} == {}
