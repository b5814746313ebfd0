"""Lightning, transformers.Trainer and Accelerate run the loop: names, modes, steps and values as the script sees them."""

from __future__ import annotations

import importlib.util

import pytest

for package in ("torch", "lightning", "transformers", "accelerate"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)


LIGHTNING = {}
HUGGINGFACE = {}


@pytest.fixture(scope="module")
def lightning(play_script):
    return play_script("lightning_scenes.py")


@pytest.fixture(scope="module")
def huggingface(play_script):
    return play_script("huggingface_scenes.py")


@pytest.mark.parametrize(
    "scene",
    [
        "inner_model",
        "module_itself",
        "accumulation_and_clipping",
        "half_precision",
        "three_parts",
        "manual_optimization",
        "fabric_loop",
    ],
)
def test_lightning(lightning, scene):
    assert lightning.check(scene, 1e-6) == -1


@pytest.mark.parametrize(
    "scene",
    [
        "language_model",
        "classifier_with_accumulation",
        "half_precision",
        "compiled",
        "resumed",
        "accelerate_plain",
        "accelerate_half_precision_accumulating",
    ],
)
def test_huggingface(huggingface, scene):
    assert huggingface.check(scene, 1e-6) == -1
