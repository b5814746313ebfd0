"""Unedited scripts in which it takes a look to tell what the model is: found, named and saved right, or said."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from harness.compare import assert_untouched, run_both

from smd_agent.core.modes import ModeKeys

MODELS = {
    "adversaries": 3 * (4 + 1 + 2 + 4),
    "critics_and_generator": 3 * (4 + 6 + 4),
    "generator_that_waits": 8,
    "copies_of_the_model": 24,
    "frozen_backbone": 21,
    "unfrozen_later": 18,
    "two_of_one_class": 48,
    "one_after_the_other": 54,
    "one_after_the_other_kept": 54,
    "one_after_the_other_in_cycles": 27,
    "all_made_before_the_first_trains": 18,
    "many_other_modules_first": 18,
    "lazy_layers": 24,
    "parametrized": 29,
    "replaced_head": 18,
}
PARTS = {
    "losses_with_parameters": 33,
    "loss_modules_with_parameters": 33,
    "loss_with_parameters_called_twice": 2 * (4 + 1 + 4 + 4 + 1),
    "parts_of_a_module": 33,
    "parts_of_a_plain_object": 36,
    "own_call": 36,
    "shared_parts": 48,
    "part_first_then_whole": 18,
    "inner_model_evaluated": 28,
}
ODD = {
    "own_optimizer": 18,
    "trained_in_evaluation_mode": 28,
    "later_in_evaluation_mode": 37,
    "saliency_is_no_training": 21,
    "functional_call_with_other_parameters": 24,
    "adapted_copies": 2 * (4 + 2 + 4),
    "copies_of_the_dict": 40,
    "batches_that_fail": 27,
    "beside_plain_parameters": 24,
    "in_another_thread": 27,
    "in_two_threads": 20,
    "gradients_by_autograd_grad": 16,
}
WRAPPERS = {
    "data_parallel": 34,
    "ddp_before_the_optimizer": 33,
    "ddp_after_the_optimizer": 30,
    "wrapped_part": 8,
    "compiled_part": 8,
    "compiled_model": 36,
    "compiled_by_its_method": 30,
    "compiled_after_training_has_begun": 50,
    "two_compiled_forms_of_one_model": 22,
    "compiled_ddp": 30,
    "sharded": 42,
    "zero_redundancy": 30,
    "scripted": 40,
    "traced_by_fx": 20,
    "step_compiled_whole": 36,
    "step_compiled_whole_eager": 38,
    "step_compiled_up_to_the_loss": 36,
}


@pytest.fixture(scope="module")
def models(play_script):
    return play_script("pytorch/model_scenes.py")


@pytest.fixture(scope="module")
def parts(play_script):
    return play_script("pytorch/part_scenes.py")


@pytest.fixture(scope="module")
def odd(play_script):
    return play_script("pytorch/odd_scenes.py")


@pytest.fixture(scope="module")
def wrappers(play_script):
    pytest.importorskip("torch.distributed.fsdp").fully_shard  # noqa: B018
    return play_script("pytorch/wrapper_scenes.py")


@pytest.mark.parametrize("scene", MODELS)
def test_the_model_is_found_among_others(models, scene):
    assert models.check(scene) == MODELS[scene]


@pytest.mark.parametrize("scene", PARTS)
def test_each_part_is_found(parts, scene):
    assert parts.check(scene) == PARTS[scene]


@pytest.mark.parametrize("scene", ODD)
def test_the_model_is_found_in_odd_trainings(odd, scene):
    assert odd.check(scene) == ODD[scene]


@pytest.mark.parametrize("scene", WRAPPERS)
def test_the_model_is_found_in_wrappers(wrappers, scene):
    assert wrappers.check(scene) == WRAPPERS[scene]


def test_every_step_is_one_of_a_scene(models, parts, odd, wrappers):
    for played, scenes in ((models, MODELS), (parts, PARTS), (odd, ODD), (wrappers, WRAPPERS)):
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            expected = [step for scene in scenes for step in played.steps(scene, mode)]
            if played is odd and mode is ModeKeys.TRAIN:
                assert expected.pop(0) == played.steps("own_optimizer", mode)[0]
            assert played.trial.steps(mode=mode) == expected


def names_of(played, scene, step=0):
    steps = played.steps(scene, ModeKeys.TRAIN)
    return set(played.trial.tensor_names(step=steps[step], mode=ModeKeys.TRAIN))


def owners(names):
    parameters = {name.removeprefix("gradient/") for name in names if name.endswith(("weight", "bias"))}
    return {name.partition("_")[0] for name in parameters if "/" not in name}


def test_what_is_not_trained_is_not_taken_for_the_model(models, parts):
    assert owners(names_of(models, "copies_of_the_model", 2)) == {"Net"}
    assert owners(names_of(parts, "losses_with_parameters", 2)) == {"Net", "ArcFaceLoss"}
    frozen = names_of(models, "frozen_backbone")
    assert "Net_fc1.weight" in frozen
    assert "gradient/Net_fc1.weight" not in frozen


def test_a_model_gets_gradients_of_its_own_turns_only(models):
    for scene in ("adversaries", "critics_and_generator"):
        assert models.saved(scene, "gradient/G_weight") == [0, 1, 2]
        assert models.saved(scene, "gradient/D_weight") == [0, 1, 2]
    # The first model of the search is still there, with its last gradients.
    assert models.saved("one_after_the_other_kept", "gradient/Net_fc1.weight") == [0, 1]


def test_a_loss_with_parameters_is_saved_once(parts):
    for scene in ("losses_with_parameters", "loss_modules_with_parameters"):
        for step in range(3):
            names = names_of(parts, scene, step)
            assert len([name for name in names if "Loss_output" in name]) == 1


def test_a_model_nobody_calls_any_more_is_not_saved_for_ever(models):
    # In the scene before, two models of that name trained last; they were dropped. Here one is kept and waits.
    assert models.saved("generator_that_waits", "D_weight") == list(range(122))
    assert models.saved("generator_that_waits", "G_weight")[-2:] == [120, 121]


def test_wrappers_leave_no_trace_in_names(wrappers):
    names = wrappers.trial.tensor_names()
    assert not [name for name in names if "_orig_mod" in name or "module." in name or "FSDP" in name]


def test_each_limit_is_one_line(models, parts, odd, wrappers):
    said = [line.removeprefix("smd_agent: ") for line in odd.lines]
    assert [line for line in said if not line.startswith("sav")] == [
        "no torch.optim optimizer was used before the first backward pass: every pass ends a step, "
        "and what is saved begins with step 1",
        "Net gets gradients in evaluation mode: its next calls train it where they are enabled",
        "Net gets gradients in evaluation mode: its next calls train it where they are enabled",
        "trained parameters that belong to no module are not saved (1)",
        "models are called in several threads at once: of calls at the same time only the first is a step",
    ]
    assert [line.partition(":")[0] for line in models.lines] == ["smd_agent"] * 3
    assert "AveragedModel is evaluated, which nothing trains" in models.lines[1]
    assert len(parts.lines) == 2
    assert [line for line in wrappers.lines if "cannot be seen" in line] == [
        "smd_agent: calls of Net cannot be seen, as in a compiled function: "
        "a step begins with the first backward pass after an update; "
        "weights, gradients and losses are saved, inputs and outputs are not"
    ]


def test_of_a_step_compiled_whole_the_rest_is_saved(wrappers):
    # The step before is that of the first backward pass, which is lost.
    names = names_of(wrappers, "step_compiled_whole")
    about = ("update", "optimizer/", "parameters/", "usage/", "line/")
    assert {name.partition("_")[0] for name in names if not name.startswith(about)} == {"Net", "gradient/Net", "Loss"}
    # The next step's loss has no part in it.
    assert "Loss_output_1" not in names


BY_HAND = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 3))
x, y = torch.randn(8, 5), torch.randint(0, 3, (8,))
"""
AUTOGRAD_GRAD = (
    BY_HAND
    + """
for i in range(3):
    parameters = list(model.parameters())
    print(model[0].weight.detach().double().sum().item())
    loss = nn.functional.cross_entropy(model(x), y)
    gradients = torch.autograd.grad(loss, parameters)
    print(gradients[0].double().sum().item())
    with torch.no_grad():
        for p, g in zip(parameters, gradients): p -= 0.1 * g
"""
)
TRANSFORM = (
    BY_HAND
    + """
parameters = {name: p.detach() for name, p in model.named_parameters()}
loss = lambda p: nn.functional.cross_entropy(torch.func.functional_call(model, p, (x,)), y)
for i in range(3):
    gradients = torch.func.grad(loss)(parameters)
    parameters = {name: p - 0.1 * gradients[name] for name, p in parameters.items()}
print(parameters["0.weight"].sum())
"""
)


def run(runner, body):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    both = run_both(runner, runner.write(body), config=config)
    assert_untouched(both)
    assert both.plain.stderr == ""
    return both


def test_a_loop_of_autograd_grad_alone_is_captured_from_its_second_step(runner):
    both = run(runner, AUTOGRAD_GRAD)
    sums = [float(line) for line in both.plain.stdout.splitlines()]
    assert sum("what is saved begins with step 1" in line for line in both.said) == 1
    trial = both.trial
    assert trial.steps(mode=ModeKeys.TRAIN) == [1, 2]
    for step in (1, 2):
        for place, name in enumerate(("Sequential_0.weight", "gradient/Sequential_0.weight")):
            value = trial.tensor(name).value(step, mode=ModeKeys.TRAIN)
            assert value.astype("float64").sum() == pytest.approx(sums[2 * step + place], abs=1e-12)


def test_gradients_of_torch_func_are_a_line(runner):
    both = run(runner, TRANSFORM)
    assert both.said == ["smd_agent: nothing was captured: gradients taken by torch.func cannot be seen"]
    assert not (runner.folder / "run").exists()


def test_nothing_is_left_on_the_framework(runner):
    body = (
        BY_HAND
        + """
def functions():
    loss_call = vars(nn.modules.loss._Loss).get("__call__")
    return [nn.Module.__call__, torch.autograd.grad, torch.func.grad, loss_call]
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(12):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    # A second training begins while a step of the first one is being saved.
    if i in (3, 5):
        model = nn.Sequential(nn.Linear(5, 3))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
print([getattr(f, "__module__", None) for f in functions()], [hasattr(f, "__wrapped__") for f in functions()])
"""
    )
    config = {"HookParameters": {"save_interval": 3, "save_all": True}}
    both = run_both(runner, runner.write(body), config=config)
    assert_untouched(both)
    assert "saved 4 steps" in both.agent.stderr


def test_copies_of_a_models_dict_are_told_apart_whoever_made_them(out):
    import smd_agent.pytorch as smd

    model = torch.nn.Linear(3, 2)
    hook = smd.Hook(out)
    hook.register_module(model)
    clone = torch.nn.Linear.__new__(torch.nn.Linear)
    clone.__dict__ = model.__dict__.copy()
    clone._parameters = {name: p.detach() * 2 for name, p in model._parameters.items()}
    x = torch.randn(4, 3)
    torch.testing.assert_close(clone(x), 2 * model(x))
    assert hook.step == 0
    del clone
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x).sum().backward()
    optimizer.step()
    model(x)
    assert hook.step == 1
