"""GradientDiscarded, on a zero_grad in the wrong loop and on programs that differentiate more than once on purpose."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import GradientDiscarded
from smd_agent.rules.finding import Severity


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def loss_of(model):
    return functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,)))


def cleared_each_time(count=5, passes=4, to_none=True, change=lambda model: None):
    def training(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.Adam(model.parameters())
        for number in range(count * passes):
            optimizer.zero_grad(set_to_none=to_none)
            loss_of(model).backward()
            if number % passes == passes - 1:
                change(model)
                optimizer.step()

    return training


def found_in(run):
    return run.findings(GradientDiscarded())


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("passes", [2, 4])
def test_gradients_that_are_cleared_before_each_pass(trained, passes, to_none):
    (found,) = found_in(trained(cleared_each_time(passes=passes, to_none=to_none)))
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/optimizer/Adam/discarded_passes")
    assert (found.first_step, found.last_step, found.steps) == (2, 4, 3)
    assert found.evidence == {"discarded_passes": passes - 1, "passes": passes}


def test_one_step_less_than_it_takes(trained):
    run = trained(cleared_each_time(count=3))
    assert len(found_in(run)) == 1
    assert run.findings(GradientDiscarded(patience=4)) == []


def test_what_is_clipped_or_unscaled_is_still_what_the_last_pass_has_left(trained):
    def clipped(model):
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)

    assert len(found_in(trained(cleared_each_time(change=clipped)))) == 1


def test_two_optimizers_of_one_model(trained):
    def training(capture):
        model = net()
        capture(model)
        optimizers = [torch.optim.SGD(layer.parameters(), 0.1) for layer in (model[0], model[2])]
        for number in range(10):
            model.zero_grad()
            loss_of(model).backward()
            if number % 2:
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()

    assert [found.tensor.split("/")[2] for found in found_in(trained(training))] == ["SGD", "SGD_2"]


# Each does one update of a model, with an optimizer.


def accumulates(model, optimizer):
    for _ in range(4):
        (loss_of(model) / 4).backward()
    optimizer.step()
    optimizer.zero_grad()


def accumulates_into_copies(model, optimizer):
    """As for gradients that are private, or of several tasks."""
    sums = [torch.zeros_like(parameter) for parameter in model.parameters()]
    for _ in range(4):
        optimizer.zero_grad()
        loss_of(model).backward()
        for whole, parameter in zip(sums, model.parameters(), strict=True):
            whole += parameter.grad
    for whole, parameter in zip(sums, model.parameters(), strict=True):
        parameter.grad = whole
    optimizer.step()


def accumulates_into_place(model, optimizer):
    sums = [torch.zeros_like(parameter) for parameter in model.parameters()]
    for _ in range(4):
        model.zero_grad()
        loss_of(model).backward()
        for whole, parameter in zip(sums, model.parameters(), strict=True):
            whole += parameter.grad
    for whole, parameter in zip(sums, model.parameters(), strict=True):
        parameter.grad.data.copy_(whole)
    optimizer.step()


def perturbs_weights(model, optimizer):
    """Sharpness-aware minimisation."""
    for closer in (0.01, -0.01):
        optimizer.zero_grad()
        loss_of(model).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(parameter.grad.sign(), alpha=closer)
    optimizer.step()


def perturbs_data_of_weights(model, optimizer):
    kept = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        for parameter in model.parameters():
            parameter.data.sub_(0.01 * parameter.grad)
    for parameter, old in zip(model.parameters(), kept, strict=True):
        parameter.data.copy_(old)
    optimizer.step()


def measures_gradients(model, optimizer):
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e9)
    optimizer.zero_grad()
    loss_of(model).backward()
    optimizer.step()


def attacks_inputs(model, optimizer):
    x, y = torch.randn(16, 6, requires_grad=True), torch.randint(0, 4, (16,))
    for _ in range(3):
        functional.cross_entropy(model(x), y).backward()
        x.data += 0.01 * x.grad.sign()
        x.grad = None
        optimizer.zero_grad()
    functional.cross_entropy(model(x.detach()), y).backward()
    optimizer.step()


def takes_a_penalty(model, optimizer):
    optimizer.zero_grad()
    loss = loss_of(model)
    gradients = torch.autograd.grad(loss, [*model.parameters()], create_graph=True)
    (loss + sum(gradient.square().sum() for gradient in gradients)).backward()
    optimizer.step()


def restores_gradients(model, optimizer):
    """Steps of an attack whose last one adds to the gradients of the batch itself."""
    optimizer.zero_grad()
    loss_of(model).backward()
    kept = [parameter.grad.clone() for parameter in model.parameters()]
    for number in range(3):
        optimizer.zero_grad()
        if number == 2:
            for parameter, gradient in zip(model.parameters(), kept, strict=True):
                parameter.grad = gradient
        loss_of(model).backward()
    optimizer.step()


MEANT = [
    *(accumulates, accumulates_into_copies, accumulates_into_place, perturbs_weights, perturbs_data_of_weights),
    *(measures_gradients, attacks_inputs, takes_a_penalty, restores_gradients),
]


@pytest.mark.parametrize("update", MEANT)
def test_programs_that_differentiate_more_than_once_on_purpose(trained, update):
    def training(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(6):
            update(model, optimizer)

    assert found_in(trained(training)) == []


def test_lbfgs(trained):
    def training(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
        x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))

        def closure():
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        for _ in range(6):
            optimizer.step(closure)

    assert trained(training).verdict(GradientDiscarded()).findings == []


@pytest.mark.parametrize("first", ["makes", "judges"])
def test_a_gan(trained, first):
    def gan(capture):
        makes, judges = nn.Linear(4, 2), nn.Linear(2, 1)
        capture(makes, judges)
        of_makes, of_judges = (torch.optim.SGD(model.parameters(), 0.1) for model in (makes, judges))

        def turn(loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        for _ in range(6):
            turns = [
                lambda: turn(-judges(makes(torch.randn(8, 4))).mean(), of_makes),
                lambda: turn(judges(makes(torch.randn(8, 4))).square().mean(), of_judges),
            ]
            for each in turns if first == "makes" else turns[::-1]:
                each()

    assert found_in(trained(gan)) == []


def test_batches_that_are_skipped_now_and_then(trained):
    def training(capture, skipped):
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(40):
            optimizer.zero_grad()
            loss_of(model).backward()
            if number not in skipped:
                optimizer.step()

    # Three in a row are found at first, and are too few of all.
    for skipped in ({5, 11, 30}, {0, 2, 4}):
        run = trained(lambda capture, skipped=skipped: training(capture, skipped))
        assert found_in(run) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := found_in(run))} == {}
