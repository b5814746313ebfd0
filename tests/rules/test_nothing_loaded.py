"""NothingLoaded, on models that are given a state under other names."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.pytorch.model.partial_loads import partial_loads
from smd_agent.rules import NothingLoaded
from smd_agent.rules.finding import Severity


def training_after(given, own=4):
    """Train a model that was given a state under these names, without ``strict``."""

    def training(capture):
        model = nn.Sequential(*(nn.Linear(6, 6, bias=False) for _ in range(own)))
        state = {name: torch.zeros(6, 6) for name in given}
        # As the patch of ``load_state_dict`` does it.
        partial_loads.after_load(model, (state,), {"strict": False}, model.load_state_dict(state, strict=False))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    return training


def test_names_of_a_wrapper(trained):
    (found,) = trained(training_after([f"module.{number}.weight" for number in range(4)])).findings(NothingLoaded())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "loads/Sequential")
    assert (found.first_step, found.steps) == (0, 1)
    assert found.evidence == {"given": 4, "own": 4, "loaded": 0}
    assert "such as module.0.weight, module.1.weight, module.2.weight, and it has such as 0.weight" in found.cause
    assert "removeprefix('module.')" in found.advice
    assert found.in_short(found.tensor) == "nothing loaded: loads/Sequential"


def test_the_state_of_a_part(trained):
    (found,) = trained(training_after(["weight"])).findings(NothingLoaded())
    assert found.severity is Severity.PROBLEM
    assert found.advice.startswith("Put 0. in front of the names")


def test_names_that_have_nothing_in_common(trained):
    (found,) = trained(training_after(["encoder", "decoder"])).findings(NothingLoaded())
    assert found.severity is Severity.PROBLEM
    assert found.advice == NothingLoaded.advice


@pytest.mark.parametrize("of_own, others, is_found", [(1, 2, True), (1, 1, False), (2, 9, False), (4, 9, False)])
def test_less_than_half_of_both_is_a_warning(trained, of_own, others, is_found):
    given = [*(f"{number}.weight" for number in range(of_own)), *(f"other{number}" for number in range(others))]
    found = trained(training_after(given)).findings(NothingLoaded())
    assert [one.severity for one in found] == [Severity.WARNING] * is_found
    assert all(one.evidence == {"given": of_own + others, "own": 4, "loaded": of_own} for one in found)


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(NothingLoaded()))} == {}
