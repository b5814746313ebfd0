"""PosteriorCollapse, on variational autoencoders that collapse and on others, and the divergence against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

import smd_agent as smd
from smd_agent.pytorch.capture.latent_divergence import latents_behind
from smd_agent.rules import PosteriorCollapse
from smd_agent.rules.finding import Severity

PIXELS, LATENT, BATCH = 16, 3, 32


def expected(mean, deviation):
    prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    return float(kl_divergence(Normal(mean, deviation), prior).sum() / len(mean))


def by_logarithm(mean, log_variance):
    return -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp(), dim=1).mean()


def of_all(mean, log_variance):
    return -0.5 * torch.mean(1 + log_variance - mean * mean - torch.exp(log_variance))


def the_other_way_round(mean, log_variance):
    return 0.5 * (log_variance.exp() + mean.square() - 1.0 - log_variance).sum(-1).mean(0) * 0.3


def of_deviations(mean, log_variance):
    """Where the model gives logarithms of deviations."""
    log_deviation = log_variance
    return -0.5 * (1 + 2 * log_deviation - mean**2 - (2 * log_deviation).exp()).sum() / len(mean)


def of_squares(mean, deviation):
    return -0.5 * torch.sum(1 + torch.log(deviation**2) - mean**2 - deviation**2) / len(mean)


def of_plain_deviations(mean, deviation):
    return (0.5 * (mean**2 + deviation**2 - 1) - deviation.log()).sum(1).mean()


def by_distributions(mean, deviation):
    return kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum(1).mean()


# How the term is written, and the deviation by what it is given.
FORMS = {
    by_logarithm: lambda given: (given / 2).exp(),
    of_all: lambda given: (given / 2).exp(),
    the_other_way_round: lambda given: (given / 2).exp(),
    of_deviations: torch.exp,
    of_squares: torch.abs,
    of_plain_deviations: torch.abs,
    by_distributions: torch.abs,
}


@torch.no_grad()
def found_in(loss):
    return [one.numbers() for one in latents_behind([loss.grad_fn])]


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=3),
    seed=st.integers(0, 99),
    beside=st.booleans(),
)
def test_it_is_that_of_pytorch(form, sizes, seed, beside):
    torch.manual_seed(seed)
    given = torch.rand(2, *sizes).add(0.1).requires_grad_()
    mean, second = given.unbind()
    second = second if form in (of_squares, of_plain_deviations, by_distributions) else second - 0.6
    mean = mean * 2
    loss = form(mean, second)
    if beside:
        again = torch.sigmoid(mean @ torch.rand(sizes[-1], 7))
        loss = functional.mse_loss(again, torch.rand_like(again)) + loss
    if mean.numel() == 1:
        return
    (numbers,) = found_in(loss)
    known = expected(mean.detach(), FORMS[form](second.detach()))
    assert float(numbers["kl"]) == pytest.approx(known, rel=1e-3, abs=1e-4)
    assert numbers["size"] == mean.numel() / sizes[0]


def test_other_sums_are_none():
    x = torch.rand(4, 3, requires_grad=True)
    y = x.sin()
    for loss in (
        (x**2 + y**2).sum(),
        (x**2 + x.exp() - y).sum(),
        (x**3 + x.exp() - x).sum(),
        (x.exp() - x).sum(),
        functional.mse_loss(x, y),
        functional.softplus(x).mean() + x.norm(),
    ):
        assert found_in(loss) == []


def test_sums_that_come_into_each_other_are_left_alone():
    """Each step of such a simulation doubles the number of ways through the graph, of which nobody may walk each."""
    place = torch.rand(4, 3, requires_grad=True)
    speed = place * 0.5
    for _ in range(500):
        place = place + speed * 0.1
        speed = speed - place * 0.1
    assert found_in(place.sum()) == []


class Autoencoder(nn.Module):
    """A variational autoencoder of rows."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(PIXELS, 2 * LATENT), nn.Linear(LATENT, PIXELS)

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        latent = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        return self.decode(latent), mean, log_variance


def training_of(reduction, count=120):
    def training(capture):
        net = Autoencoder()
        capture(net)
        optimizer = torch.optim.Adam(net.parameters(), 0.03)
        basis = torch.randn(LATENT, PIXELS)
        for _ in range(count):
            x = torch.randn(BATCH, LATENT) @ basis
            optimizer.zero_grad()
            again, mean, log_variance = net(x)
            reconstruction = functional.mse_loss(again, x, reduction=reduction)
            part = BATCH if reduction == "sum" else 50
            (reconstruction / part + by_logarithm(mean, log_variance)).backward()
            optimizer.step()

    return training


def test_a_mean_beside_a_sum(trained):
    (found,) = trained(training_of("mean")).findings(PosteriorCollapse())
    assert found.tensor == "usage/latent/0/kl"
    assert found.severity is Severity.WARNING
    assert 0 < found.evidence["kl"] < 0.1
    assert found.evidence["size"] == LATENT
    assert found.last_step == 119


def test_sums_of_both(trained):
    assert trained(training_of("sum")).findings(PosteriorCollapse()) == []


def test_a_short_training_is_not_judged(trained):
    assert trained(training_of("mean", 40)).findings(PosteriorCollapse()) == []


@pytest.mark.parametrize(
    "course, count",
    [
        ([3, 2, 1, 0.01, 0.01, 0.01], 1),
        ([0.01] * 6, 1),
        ([0.01, 0.01, 0.01, 0.01, 0.5, 2], 0),
        ([3, 2, 1, 0.01, 0.01, 0.2], 0),
        ([3, 2, 1, 1, 0.01, 0.01], 0),
    ],
)
def test_only_the_end_counts(written, course, count):
    run = written(usage="^usage/")
    for divergence in course:
        facts = {"kl": divergence / 2, "size": 4}
        numbers = {f"usage/latent/{i}/{name}": one for i in (0, 1) for name, one in facts.items()}
        run.step(smd.modes.TRAIN, **{name: np.float64(value) for name, value in numbers.items()})
    found = run.ended().findings(PosteriorCollapse(steps=6))
    assert len(found) == count
