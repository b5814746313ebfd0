"""Loops that call their model inside of ``torch.func`` transforms too: such a call alone is left out."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.compare import assert_untouched, run_both

from smd_agent.core.modes import ModeKeys

SCENES = {
    "samples_looked_at_once": 5 * (4 + 1 + 4),
    "jacobian_in_the_loss": 5 * (4 + 1 + 1 + 4),
    "traced_in_the_first_iteration": 3 * (4 + 1 + 1 + 4),
    "only_called_for_a_derivative": 5 * (4 + 1 + 4),
    "only_called_for_tasks_at_once": 5 * (4 + 1 + 4),
    "samples_looked_at_after_each_update": 5 * (4 + 1 + 1 + 4) + 2,
}


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("pytorch/transformed_scenes.py")


@pytest.mark.parametrize("scene", SCENES)
def test_the_ordinary_call_the_loss_and_the_update_are_the_step(scenes, scene):
    assert scenes.check(scene) == SCENES[scene]


def test_no_call_in_a_transform_is_a_step(scenes):
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        expected = [step for scene in SCENES for step in scenes.steps(scene, mode)]
        assert scenes.trial.steps(mode=mode) == expected


def test_nothing_of_a_transform_is_saved(scenes):
    for scene in SCENES:
        for step in scenes.steps(scene, ModeKeys.TRAIN):
            assert scenes.trial.tensor_names(step=step, mode=ModeKeys.TRAIN, regex="CrossEntropyLoss|put_1") == []


def test_lines_say_what_is_not_saved(scenes):
    begins, *lines, ends = scenes.lines
    assert "saving all tensors" in begins
    assert "saved 30 steps" in ends
    assert lines == [
        "smd_agent: a call in which the model is traced or transformed is not saved",
        "smd_agent: calls of Net cannot be seen, as in a function that torch.func transforms: a step begins with the "
        "first backward pass after an update; weights, gradients and losses are saved, inputs and outputs are not",
    ]


def test_passes_before_the_first_update_are_one_step_where_calls_are_not_seen(runner):
    script = runner.write(
        "import torch\nfrom torch import nn\nfrom torch.nn.functional import linear, mse_loss\n"
        "model = nn.Linear(4, 1)\noptimizer = torch.optim.Adam(model.parameters(), 0.01)\n"
        "for _ in range(4):\n"
        "    for task in range(3):\n"
        "        x = torch.randn(8, 4)\n"
        "        fast = model.weight - 0.1 * torch.autograd.grad(linear(x, model.weight).sum(), model.weight)[0]\n"
        "        mse_loss(linear(x, fast, model.bias), x[:, :1]).backward()\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
    )
    both = run_both(runner, script, config={"HookParameters": {"save_interval": 1}})
    assert_untouched(both)
    assert both.trial.steps() == [0, 1, 2, 3]
    losses = both.trial.tensor_names(collection="losses")
    assert len(losses) == 3
    assert all(both.trial.tensor(name).steps() == [0, 1, 2, 3] for name in losses)


@pytest.mark.parametrize("interval", [2, 3])
def test_steps_have_the_same_numbers_at_every_interval(play_script, interval):
    played = play_script("pytorch/transformed_scenes.py", {"save_interval": interval})
    assert played.trial.steps(mode=ModeKeys.TRAIN) == [*range(0, 28, interval)]
    assert played.trial.tensor("Loss_output_0").steps(mode=ModeKeys.TRAIN) == [*range(0, 28, interval)]
