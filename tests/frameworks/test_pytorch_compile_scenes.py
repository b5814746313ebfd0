"""Compiled training loops: as many graphs, breaks and frames as without the agent, and the right values.

A script's scenes print what was compiled; the fixture compares what is printed with and without the agent.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both

from smd_agent.core.modes import ModeKeys

PARAMETERS = 6
LAYERS = 5


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("pytorch/compile_scenes.py")


@pytest.fixture(scope="module")
def traced(play_script):
    return play_script("pytorch/traced_scenes.py")


def trained(steps, layers=LAYERS, evaluated=2):
    return steps * (PARAMETERS * 2 + 1 + layers) + evaluated * (1 + layers)


CHECKED = {
    "compiled_adversaries": 6,
    "compiled_model": trained(4),
    "compiled_in_place": trained(4),
    "compiled_parts": 4 * (8 * 2 + 1) + 2,
    "dynamic_shapes": trained(4),
    "compiled_losses": trained(4),
    "compiled_optimizer": trained(4),
    "no_recompiling_at_all": trained(6, evaluated=0),
    "prints_and_counts": trained(4, layers=0),
    "counts": trained(4, layers=0),
    "asks_whether_it_is_compiled": trained(4, layers=0),
    "remembers": trained(4, layers=0),
}


@pytest.mark.parametrize("scene", CHECKED)
def test_values_of_compiled_models_and_of_their_layers(scenes, scene):
    # The gradients of unused parameters are none.
    expected = CHECKED[scene] - (4 * 2 if scene == "remembers" else 0)
    assert scenes.check(scene, 1e-5) == expected


def test_saving_every_second_step_compiles_nothing_anew(play_script):
    # Were anything compiled anew between the two kinds of steps, the counts that the scenes print would tell.
    played = play_script("pytorch/recompile_scenes.py", {"save_interval": 2, "start_step": 1})
    assert played.saved("compiled_model", "fc1_output_0") == [2]


REFUSED = {
    "Noisy": "does more than run a graph",
    "Counting": "does more than run a graph",
    "Overwriting": "overwrites its input",
    "Remembering": "cannot be run again",
}


def test_what_the_program_could_notice_is_not_run_again_and_a_line_says_so(scenes):
    (first, *lines, last) = scenes.lines
    # Of the scene that compiles its loss.
    lines.remove("smd_agent: no loss is seen in evaluation: in training it comes out of a compiled function")
    # Of the scene that begins without an optimizer.
    (_,) = [lines.remove(line) for line in [*lines] if "Overwriting is trained without an optimizer" in line]
    assert "saving all tensors" in first
    assert "saved" in last
    # One line for each reason.
    assert len(lines) == len(set(REFUSED.values()))
    for reason in REFUSED.values():
        assert sum(reason in line for line in lines) == 1
    for scene in ("prints_and_counts", "counts", "overwrites_its_input", "remembers"):
        assert scenes.saved(scene, "fc1_output_0") == []


def test_the_branch_that_was_compiled_is_the_one_that_shows(scenes):
    assert scenes.saved("asks_whether_it_is_compiled", "bn_output_0") == [0, 1, 2, 3]


def test_layers_of_compiled_parts(scenes):
    for step in scenes.steps("compiled_parts", ModeKeys.TRAIN):
        first = scenes.value("first_output_0", step)
        np.testing.assert_array_equal(scenes.value("inner_input_0", step), first)
        weight, bias = (scenes.value(f"Part_inner.a.{name}", step) for name in ("weight", "bias"))
        np.testing.assert_allclose(
            scenes.value("inner.a_output_0", step), first @ weight.T + bias, rtol=1e-5, atol=1e-6
        )
        for part, after in (("inner", "other_input_0"), ("other", "last_input_0")):
            np.testing.assert_array_equal(scenes.value(f"{part}_output_0", step), scenes.value(after, step))
            np.testing.assert_array_equal(scenes.value(f"{part}.d_output_0", step), scenes.value(after, step))


TRACED = {
    "scripted": 3 * (2 * 4 + 1),
    "checkpointed": 3 * (2 + 4),
    "checkpointed_reentrantly": 3 * (2 + 4),
    "autocast_bfloat16": 3 * (2 * 4 + 2),
    "autocast_float16": 3 * (2 * 4 + 2),
    "looked_at_while_it_trains": 3 * (2 * 4 + 1),
}


@pytest.mark.parametrize("scene", TRACED)
def test_models_that_are_traced_recomputed_or_cast(traced, scene):
    assert traced.check(scene, 1e-6) == TRACED[scene]


def test_each_kind_of_tracing_is_a_line(traced):
    assert sum("they are TorchScript" in line for line in traced.lines) == 1
    assert sum("traced or transformed is not saved" in line for line in traced.lines) == 1
    assert len(traced.lines) == 4


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_code_that_draws_random_numbers_of_its_own_has_no_layers(play_script):
    played = play_script("pytorch/inductor_scenes.py")
    # The model has no dropout.
    layers = LAYERS - 1
    assert played.check("without_random_numbers", 1e-4) == trained(4, layers=layers)
    assert played.check("with_random_numbers", 1e-4) == trained(4, layers=0, evaluated=0)
    assert played.saved("with_random_numbers", "fc1_output_0") == []
    assert sum("computes something else than the model without the compiler" in line for line in played.lines) == 1


STEPS = {
    "a whole step": "@compiled\n"
    "def step(x):\n"
    "    loss = model(x).pow(2).mean()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    optimizer.zero_grad()\n",
    "an update": "update = compiled(lambda: optimizer.step())\n"
    "def step(x):\n"
    "    optimizer.zero_grad()\n"
    "    model(x).pow(2).mean().backward()\n"
    "    update()\n",
    "a layer that computes nothing": "prepare = compiled(lambda x: model[0](x))\n"
    "def step(x):\n"
    "    optimizer.zero_grad()\n"
    "    model(prepare(x)).pow(2).mean().backward()\n"
    "    optimizer.step()\n",
}


@pytest.mark.parametrize("compiled", STEPS)
def test_the_compiler_is_given_the_same_functions(runner, compiled):
    script = runner.write(
        "import torch, torch._dynamo.convert_frame as frames\n"
        "from torch import nn\n"
        "given, original = [], frames.ConvertFrame.__call__\n"
        "def convert(self, frame, *args, **kwargs):\n"
        "    given.append((frame.f_code.co_filename, frame.f_code.co_name))\n"
        "    return original(self, frame, *args, **kwargs)\n"
        "frames.ConvertFrame.__call__ = convert\n"
        "compiled = torch.compile(backend='aot_eager')\n"
        "torch.manual_seed(0)\n"
        "model = nn.Sequential(nn.Identity(), nn.Linear(4, 2))\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        f"{STEPS[compiled]}"
        "for _ in range(6):\n"
        "    step(torch.randn(8, 4))\n"
        "print(*given, sep='\\n')\n"
        "print([sorted(torch._dynamo.utils.counters[kind].items()) for kind in ('frames', 'stats')])\n"
        "print([value.tolist() for value in model.parameters()])\n"
    )
    both = run_both(runner, script, config={"HookParameters": {"save_interval": 1, "save_all": True}})
    # The compiler warns with the time and the number of the process.
    assert_untouched(both, stderr=False)
    assert "'total'" in both.agent.stdout
    assert both.trial.steps() == [0, 1, 2, 3, 4, 5]
    # What is compiled of an optimizer does not hide its update.
    (rate,) = both.trial.tensor_names(regex="optimizer/.*/lr")
    assert both.trial.tensor(rate).steps() == [0, 1, 2, 3, 4, 5]
