"""Trainings without an optimizer of ``torch.optim`` that come after others in one process."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from smd_agent.core.modes import ModeKeys

SCENES = {
    "by_an_optimizer": 3 * (4 + 2 + 4),
    "by_hand": 3 * (2 + 1 + 1 + 2) + 2,
    "by_hand_again": 2 * (4 + 1 + 1 + 4),
    "by_an_optimizer_again": 2 * (4 + 2 + 4),
    "by_hand_amid_a_training": 4 * (4 + 2 + 4) + 2 * (2 + 1 + 1 + 2),
    "with_a_judge_that_nothing_trains": 3 * (4 + 4),
}
# The scenes' first steps of a training by hand, which are counted and not saved.
FIRST_BY_HAND = {"by_hand": 0, "by_hand_again": 0, "by_hand_amid_a_training": 2}


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("pytorch/later_scenes.py")


@pytest.mark.parametrize("scene", SCENES)
def test_a_training_by_hand_is_saved_from_its_second_step_on_and_others_as_ever(scenes, scene):
    assert scenes.check(scene) == SCENES[scene]


def test_every_step_is_one_of_a_scene(scenes):
    missed = {scenes.steps(scene, ModeKeys.TRAIN)[step] for scene, step in FIRST_BY_HAND.items()}
    train = [step for scene in SCENES for step in scenes.steps(scene, ModeKeys.TRAIN)]
    assert scenes.trial.steps(mode=ModeKeys.TRAIN) == [step for step in train if step not in missed]
    assert scenes.trial.steps(mode=ModeKeys.EVAL) == [0, 1]


def test_one_line_says_so_for_each_class(scenes):
    lines = [line for line in scenes.lines if "without an optimizer" in line]
    assert lines == [
        f"smd_agent: {model} is trained without an optimizer of torch.optim, after another training: every pass ends a "
        "step, and its first step is not saved"
        for model in ("Head", "Net")
    ]


def test_passes_are_looked_at_no_more_once_modules_that_came_later_have_an_optimizer_or_stay_untrained(runner):
    body = """
import torch
from smd_agent.framework.replaced_functions import is_replaced
def watched(): print(is_replaced(torch.autograd, "grad"))
def step(model, optimizer):
    optimizer.zero_grad(); model(torch.ones(2, 3)).sum().backward(); optimizer.step()
models = []
def train(steps):
    models.append(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(models[-1].parameters(), lr=0.1)
    for _ in range(steps): step(models[-1], optimizer)
    return optimizer
train(3); watched()
optimizer = train(3); watched()
teacher = torch.nn.Linear(3, 1); watched()
for _ in range(100): step(models[-1], optimizer)
watched()
for _ in range(200): torch.nn.Linear(3, 1)
watched()
step(models[-1], optimizer); watched()
"""
    result = runner.by_variable(runner.write(body), config={"HookParameters": {"save_interval": 1000}})
    assert result.stdout.split() == ["False", "False", "True", "False", "False", "False"], result.stderr
