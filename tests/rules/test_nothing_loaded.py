"""NothingLoaded, on models that are given a state under other names."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from harness.runner import Runner
from torch import nn
from torch.nn import functional

from smd_agent.analysis.trial import create_trial
from smd_agent.pytorch.model.kept_states import kept_states
from smd_agent.pytorch.model.partial_loads import partial_loads
from smd_agent.rules import NothingLoaded
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging


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


def taken(model, **told):
    """A model's state, of which note is taken as the patch of ``state_dict`` does it."""
    state = model.state_dict(**told)
    kept_states.taken(model, (), told, state)
    return state


def load(model, state):
    partial_loads.after_load(model, (state,), {}, model.load_state_dict(state))


def keeping(copied, change=load, before=lambda model: None, at=2):
    """A training that keeps a state at its beginning, as ``copied`` has it, and loads it after three more steps."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 4))
        before(model)
        capture(model)
        optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
        kept = None
        for step in range(6):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
            optimizer.step()
            if step == 1:
                kept = copied(model)
            if step == at:
                change(model, kept)

    return training


def freeze(model):
    model[0].requires_grad_(False)


def from_a_file(model):
    file = io.BytesIO()
    torch.save(taken(model), file)
    file.seek(0)
    return torch.load(file)


NO_COPIES = {
    "as it is": (taken, {}),
    "a dict of its own": (lambda model: dict(taken(model)), {}),
    "a shallow copy": (lambda model: copy.copy(taken(model)), {}),
    "on the same device": (lambda model: {name: value.cpu() for name, value in taken(model).items()}, {}),
    "the parameters": (lambda model: taken(model, keep_vars=True), {}),
    "partly frozen": (taken, {"before": freeze}),
    "much later": (taken, {"at": 4}),
}


@pytest.mark.parametrize("name", NO_COPIES)
def test_a_state_that_was_kept_without_a_copy(trained, name):
    copied, told = NO_COPIES[name]
    (found,) = trained(keeping(copied, **told)).findings(NothingLoaded())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "loads/Sequential")
    assert "own memory" in found.cause
    assert "deepcopy" in found.advice


def scaled(model, state):
    """Each weight is made smaller, in what a state has of them."""
    state = taken(model)
    with torch.no_grad():
        for value in state.values():
            value.mul_(0.9)
    load(model, state)


def into_another(model, state):
    load(copy.deepcopy(model), state)


COPIES = {
    "deepcopy": (lambda model: copy.deepcopy(taken(model)), {}),
    "clone": (lambda model: {name: value.clone() for name, value in taken(model).items()}, {}),
    "file": (from_a_file, {}),
    "at once": (taken, {"at": 1}),
    "twice at once": (lambda model: load(model, taken(model)), {"change": lambda model, _: load(model, taken(model))}),
    "scaled": (taken, {"change": scaled}),
    "into another model": (taken, {"change": into_another}),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_state_that_is_a_copy_or_has_not_changed(trained, name):
    copied, told = COPIES[name]
    assert trained(keeping(copied, **told)).findings(NothingLoaded()) == []


def test_means_that_are_computed_in_the_memory_of_a_model_that_no_optimizer_has(trained):
    average = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 4))

    def add(model, state):
        with torch.no_grad():
            for name, value in model.state_dict().items():
                state[name].lerp_(value, 0.5)
        load(average, state)

    assert trained(keeping(lambda _: taken(average), add)).findings(NothingLoaded()) == []


@pytest.mark.parametrize("every", [4, 1])
def test_a_state_that_is_loaded_at_the_end(trained, every):
    """Be the last step one that is saved or not."""
    run = trained(keeping(taken, at=5), every=every)
    assert len(run.findings(NothingLoaded())) == 1


STOPPED_EARLY = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def evaluate():
    with torch.no_grad():
        return nn.functional.mse_loss(model.eval()(torch.ones(8, 6)), torch.ones(8, 1)).item()
for epoch in range(8):
    model.train()
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.rand(8, 6)), torch.rand(8, 1)).backward()
        optimizer.step()
    evaluate()
    if epoch == 1:
        best = COPY(model.state_dict())
model.load_state_dict(best)
evaluate()
"""


@pytest.mark.parametrize("copied, findings", [("dict", 1), ("__import__('copy').deepcopy", 0)])
@pytest.mark.parametrize("options", [(), ("--every", "1")], ids=["default", "every step"])
def test_a_program_that_loads_its_best_state_before_its_last_evaluation(tmp_path, options, copied, findings):
    runner = Runner(tmp_path)
    script = runner.write(STOPPED_EARLY.replace("COPY", copied))
    done = runner.by_launcher("--out", str(tmp_path / "run"), *options, str(script), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    judging = Judging(create_trial(str(tmp_path / "run")), [NothingLoaded()])
    judging.take_new()
    assert len(judging.verdict().findings) == findings


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(NothingLoaded()))} == {}
