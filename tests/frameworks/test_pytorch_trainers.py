"""Lightning, transformers.Trainer and Accelerate run the loop: names, modes, steps and values as scripts see them."""

from __future__ import annotations

import importlib.util

import pytest

for package in ("torch", "lightning", "transformers", "accelerate"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)

from smd_agent.core.modes import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL

# How many values each scene notes of itself.
LIGHTNING = {
    "inner_model": 6 * (4 + 1 + 4) + 4 * 2,
    "module_itself": 6 * (4 + 1 + 4) + 7 * 2,
    "accumulation_and_clipping": 4 * (4 + 4) + 6,
    "half_precision": 6 * (4 + 1 + 4) + 2 * 2,
    "three_parts": 6 * (6 + 1 + 6),
    "manual_optimization": 6 * (4 + 2 + 2),
    "fabric_loop": 3 * (4 + 1 + 4) + 3,
}
GPT2 = 16
BERT = 25
HUGGINGFACE = {
    "language_model": 6 * (GPT2 + 1 + GPT2) + 7 * 2,
    "classifier_with_accumulation": 3 * (BERT + 2 + BERT) + 2 * 2,
    "half_precision": 6 * (GPT2 + 1 + GPT2),
    "compiled": 6 * (GPT2 + 1 + GPT2) + 2 * 2,
    "resumed": 6 * (GPT2 + 1 + GPT2),
    "accelerate_plain": 6 * (4 + 1 + 4) + 1,
    "accelerate_half_precision_accumulating": 3 * (4 + 2 + 4) + 1,
}


@pytest.fixture(scope="module")
def lightning(play_script):
    return play_script("pytorch/lightning_scenes.py")


@pytest.fixture(scope="module")
def huggingface(play_script):
    return play_script("pytorch/huggingface_scenes.py")


def number_of_steps(played, scenes, mode):
    return sum(len(played.steps(scene, mode)) for scene in scenes)


@pytest.mark.parametrize("scene", LIGHTNING)
def test_lightning(lightning, scene):
    assert lightning.check(scene, 1e-6) == LIGHTNING[scene]


@pytest.mark.parametrize("scene", HUGGINGFACE)
def test_transformers_and_accelerate(huggingface, scene):
    assert huggingface.check(scene, 1e-6) == HUGGINGFACE[scene]


@pytest.mark.parametrize("mode", [TRAIN, EVAL])
def test_a_step_is_an_update(lightning, huggingface, mode):
    for played, scenes in ((lightning, LIGHTNING), (huggingface, HUGGINGFACE)):
        assert played.trial.steps(mode=mode) == list(range(number_of_steps(played, scenes, mode)))


def test_one_loss_for_each_step(lightning):
    """Lightning divides a loss by the number of accumulated batches; that is not a second loss."""
    assert lightning.saved("accumulation_and_clipping", "CrossEntropyLoss_output_0") == list(range(4))
    assert lightning.saved("accumulation_and_clipping", "Loss_output_0") == []
    assert lightning.saved("manual_optimization", "Loss_output_0") == list(range(6))


def test_a_frozen_part_has_no_gradient(lightning):
    assert lightning.saved("manual_optimization", "gradient/Gan_discriminator.weight") == list(range(6))
    assert lightning.saved("manual_optimization", "gradient/Gan_generator.weight") == list(range(6))


def test_each_loss_has_one_name(huggingface):
    """The module inside the model has given its loss a name already, also where nothing starts a backward pass."""
    scene = "classifier_with_accumulation"
    for mode, steps in ((TRAIN, 3), (EVAL, 2)):
        assert huggingface.saved(scene, "CrossEntropyLoss_output_0", mode) == list(range(steps))
        assert huggingface.saved(scene, "Loss_output_0", mode) == []
    assert huggingface.saved("language_model", "Loss_output_0", EVAL) == list(range(7))
