"""Bundles of steps that go wrong: what is kept, when, and that the run is as without the agent."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.bundles import bundles_in
from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.core.budget import Budget
from smd_agent.core.requests import KEEP, Request
from smd_agent.formats.bundles import ASKED_FOR

SCRIPT = SUBJECTS / "pytorch/step_goes_wrong.py"


def losses_of(result):
    return [float(line) for line in result.stdout.splitlines() if re.fullmatch(r"-?[\d.e+-]+|nan|-?inf", line)]


def first_bad(losses):
    return next(place for place, loss in enumerate(losses) if not math.isfinite(loss))


@pytest.mark.parametrize("fault", ["log", "row", "half", "rate", "dict", "targets"])
def test_the_first_loss_that_is_not_finite_leaves_a_bundle(runner, fault):
    both = run_both(runner, SCRIPT, "--fault", fault, strict=True)
    assert_untouched(both)
    step = first_bad(losses_of(both.plain))
    (bundle,) = bundles_in(both.folder)
    assert bundle.folder.name == f"step_{step}"
    assert bundle.facts["step"] == step
    assert str(losses_of(both.plain)[step]) == bundle.facts["loss"]
    assert bundle.facts["words"] == [str(SCRIPT), "--fault", fault]
    weights = [one for name, one in bundle.tensors.items() if name.startswith("weights/")]
    # Those that the step was made with: its update would have spoilt them.
    assert all(np.isfinite(one).all() for one in weights)
    (line,) = [line for line in both.said if "has gone wrong" in line]
    assert f"step {step} has gone wrong" in line
    assert f"python -m smd_agent replay {both.folder} " in line


def test_a_bundle_has_the_batch_the_labels_and_the_random_state(runner):
    both = run_both(runner, SCRIPT, "--fault", "row", strict=True)
    (bundle,) = bundles_in(both.folder)
    given = bundle.tensors["given/args[0]"]
    assert given.shape == (8, 8)
    assert np.isnan(given).all(1).sum() == 1
    (frame,) = [place for place, (_, name) in enumerate(bundle.facts["frames"]) if name == "train"]
    assert bundle.tensors[f"near/{frame}/y"].shape == (8,)
    assert bundle.tensors[f"near/{frame}/targets"].shape == (8, 3)
    assert bundle.tensors["random/cpu"].dtype == np.uint8
    assert bundle.tensors["buffers/Classifier/body.1.running_mean"].shape == (16,)
    assert [name for name, _ in bundle.facts["operations"]][-1] == "NllLossBackward0"


@pytest.mark.cold
def test_a_step_that_an_error_ends_leaves_a_bundle(runner):
    both = run_both(runner, SCRIPT, "--fault", "label", strict=True)
    assert_untouched(both, code=1)
    (bundle,) = bundles_in(both.folder)
    assert bundle.facts["step"] == len(losses_of(both.plain))
    assert bundle.facts["why"].startswith("IndexError: Target 3 is out of bounds")
    assert any(3 in one for name, one in bundle.tensors.items() if name.endswith("/y"))


def test_a_training_without_a_fault_leaves_none(runner):
    both = run_both(runner, SCRIPT, strict=True)
    assert_untouched(both)
    assert not (both.folder / "bundles").exists()


def test_what_the_program_has_changed_since_is_named_and_left_out(runner):
    both = run_both(runner, SCRIPT, "--fault", "changed", strict=True)
    assert_untouched(both)
    (bundle,) = bundles_in(both.folder)
    assert bundle.facts["changed"] == ["args[0]"]
    assert not any(name.startswith("given/") or name.endswith("/x") for name in bundle.tensors)


def test_of_several_passes_the_call_is_kept_that_the_loss_is_of(runner):
    both = run_both(runner, SCRIPT, "--fault", "accumulated", strict=True)
    assert_untouched(both)
    (bundle,) = bundles_in(both.folder)
    assert bundle.facts["step"] == 2
    assert not np.isfinite(bundle.tensors["given/args[0]"]).all()


@pytest.mark.parametrize(
    "parameters, reason", [({"bundles": False}, None), ({"bundle_megabytes": 1}, r"its \d+ MiB are more than")]
)
def test_there_is_none_where_it_is_off_or_too_large(runner, parameters, reason):
    words = ["--fault", "row", "--width", "60000"]
    both = run_both(runner, SCRIPT, *words, config={"HookParameters": parameters}, strict=True)
    assert_untouched(both)
    assert not (both.folder / "bundles").exists()
    lines = [line for line in both.said if "the loss is nan" in line]
    assert len(lines) == (reason is not None)
    assert all(re.search(reason, line) for line in lines)


def test_the_launcher_keeps_one_by_default_and_none_if_asked(runner):
    result = runner.by_launcher("--out", "run", SCRIPT, "--fault", "row")
    assert result.returncode == 0, result.stderr
    assert len(bundles_in(runner.folder / "run")) == 1
    result = runner.by_launcher("--no-bundles", "--out", "other", SCRIPT, "--fault", "row")
    assert result.returncode == 0, result.stderr
    assert bundles_in(runner.folder / "other") == []


def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_is_taken_for_one(runner):
    script = runner.write(
        "import os\n"
        "from smd_agent.storage import worker_place\n"
        "kept = worker_place.replace_file\n"
        "def replace_file(root, name, *content):\n"
        "    if name.endswith('bundle.json'):\n"
        "        os.kill(os.getpid(), 9)\n"
        "    kept(root, name, *content)\n"
        "worker_place.replace_file = replace_file\n"
        "import sys\n"
        f"sys.argv[1:] = ['--fault', 'row']\n"
        f"exec(compile(open({str(SCRIPT)!r}).read(), {str(SCRIPT)!r}, 'exec'))\n"
    )
    agent = runner.by_variable(script)
    assert agent.returncode == -9
    assert [path.name for path in (runner.folder / "run").glob("bundles/*/*")] == ["tensors.safetensors"]
    assert bundles_in(runner.folder / "run") == []


def hooked(out, model):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=100))
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    return hook


def test_what_a_model_is_given_is_held_until_its_update(out):
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4)).sum()
        assert hook.first_call.call is not None
        loss.backward()
        optimizer.step()
        assert hook.first_call.call is None


def test_what_made_an_input_is_not_held(out):
    first, model = nn.Linear(4, 4), nn.Linear(4, 2)
    hook = hooked(out, model)
    model(first(torch.ones(3, 4)))
    (given,) = hook.first_call.call.args
    assert given.grad_fn is None


def test_the_loss_of_another_training_leaves_none(out, capsys):
    model, other = nn.Linear(4, 2), torch.ones(2, requires_grad=True)
    hooked(out, model)
    model(torch.ones(3, 4))
    (other / 0).sum().backward()
    assert "has gone wrong" not in capsys.readouterr().err
    model(torch.full((3, 4), float("inf"))).sum().backward()
    assert "has gone wrong" in capsys.readouterr().err


def train_with_nan(model, optimizer, steps, clips=False):
    """Train; the gradient of the last step is NaN, and its loss is not."""
    for step in range(steps):
        optimizer.zero_grad()
        out = model(torch.ones(3, 4)).sum()
        (out + (out * (step < steps - 1)).abs().sqrt() * 0.1).backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


@pytest.mark.parametrize("clips", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_gradients_alone_that_are_not_finite_leave_a_bundle_before_their_update(out, steps, clips):
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    train_with_nan(model, torch.optim.SGD(model.parameters(), lr=0.1), steps, clips)
    hook.close()
    (bundle,) = bundles_in(out)
    assert bundle.facts["step"] == steps - 1
    assert bundle.facts["why"] == "gradients of Linear_weight, Linear_bias are not finite"
    assert [name for name, _ in bundle.facts["gradients"]] == ["Linear_weight", "Linear_bias"]
    assert math.isfinite(float(bundle.facts["loss"]))
    assert np.isfinite(bundle.tensors["weights/Linear/weight"]).all()
    assert not torch.isfinite(model.weight).all()


def test_gradients_are_looked_at_where_their_norms_are_not_measured(out, monkeypatch):
    monkeypatch.setattr(Budget, "takes", lambda _: False)
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    train_with_nan(model, torch.optim.SGD(model.parameters(), lr=0.1), 3)
    hook.close()
    (bundle,) = bundles_in(out)
    assert bundle.facts["step"] == 2
    assert np.isfinite(bundle.tensors["weights/Linear/weight"]).all()


@pytest.mark.parametrize("fused", [False, True])
def test_an_overflow_that_a_scaler_skips_leaves_none(out, capsys, fused):
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(model(torch.full((3, 4), 100.0)).square().sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e30)
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    assert torch.isfinite(model.weight).all()
    assert "has gone wrong" not in capsys.readouterr().err
    assert bundles_in(out) == []


def test_large_gradients_of_which_the_norm_overflows_leave_none(out):
    model = nn.Linear(4, 2, bias=False)
    hook = hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    (model(torch.full((3, 4), 1e30)) * 3e7).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    hook.close()
    assert bundles_in(out) == []


def test_there_is_one_for_each_run(out, capsys):
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.full((3, 4), float("inf"))).sum().backward()
        optimizer.step()
        hook.register_module(nn.Linear(2, 2))
    assert capsys.readouterr().err.count("has gone wrong") == 1


def asked(out, model, steps, ask_at, **given):
    """Train, and ask before the steps of these numbers; return the answers."""
    hook = hooked(out, model)
    hook.keep_bundles(given.pop("megabytes", 256))
    answers = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        if step in ask_at:
            # The run has begun, and listens.
            hook.recorder.requests.answer = answers.append
            hook.recorder.requests.take(Request(str(step), KEEP))
        optimizer.zero_grad()
        model(torch.full((3, 4), float(step) if step < given.get("bad", steps) else math.inf)).sum().backward()
        optimizer.step()
    hook.close()
    return answers


def test_steps_that_are_asked_for_are_kept_each_with_its_own_batch_and_weights(out):
    model = nn.Linear(4, 2)
    first = model.weight.detach().clone()
    answers = asked(out, model, 6, (2, 4))
    assert [(answer.obeyed, answer.step) for answer in answers] == [(True, 2), (True, 4)]
    kept = bundles_in(out)
    assert [(one.facts["step"], one.facts["why"]) for one in kept] == [(2, ASKED_FOR), (4, ASKED_FOR)]
    for one in kept:
        step = one.facts["step"]
        assert (one.tensors["given/args[0]"] == step).all()
        # Each update of a step subtracts its batch, three rows of it, a tenth.
        np.testing.assert_allclose(one.tensors["weights/Linear/weight"], first - 0.3 * sum(range(step)), rtol=1e-5)
        assert one.facts["operations"]


def test_a_step_in_a_pause_of_the_series_is_kept(out, monkeypatch):
    # Nobody is told of the passes and updates of the next 1,000 steps.
    monkeypatch.setattr("smd_agent.core.budget.Rests.after", lambda *_: 1000)
    answers = asked(out, nn.Linear(4, 2), 60, (50,))
    assert [(answer.obeyed, answer.step) for answer in answers] == [(True, 50)]
    (bundle,) = bundles_in(out)
    assert (bundle.tensors["given/args[0]"] == 50).all()


def test_what_goes_wrong_after_a_step_that_was_asked_for_is_kept_too(out, capsys):
    answers = asked(out, nn.Linear(4, 2), 8, (1, 4, 6), bad=4)
    assert [(answer.obeyed, answer.step) for answer in answers] == [(True, 1), (True, 4), (True, 6)]
    first, wrong, last = [one.facts["why"] for one in bundles_in(out)]
    assert (first, last) == (ASKED_FOR, ASKED_FOR)
    assert wrong.startswith("the loss is ")
    assert capsys.readouterr().err.count("has gone wrong") == 1


@pytest.mark.parametrize(
    "megabytes, words", [(0, "bundles are switched off"), (1, "it is not kept: its 3 MiB are more than bundle_mega")]
)
def test_a_step_that_is_asked_for_and_not_kept_is_answered_for(out, megabytes, words):
    model = nn.Sequential(nn.Linear(4, 1000), nn.Linear(1000, 1000))
    (answer,) = asked(out, model, 4, (2,), megabytes=megabytes)
    assert not answer.obeyed
    assert answer.text.startswith(words)
    assert bundles_in(out) == []
