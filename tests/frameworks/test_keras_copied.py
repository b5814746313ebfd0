"""Keras models that are copied, pickled and saved while ``fit`` runs: nothing of the agent is in them."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("there is no Keras", allow_module_level=True)

from harness.compare import assert_untouched, run_both
from harness.keras_ways import variables_of
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

BACKENDS = [
    name
    for name in ("tensorflow", "torch")
    if importlib.util.find_spec(name) and (name == "tensorflow" or not version("keras").startswith("2"))
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_copies_of_a_model_in_training_are_those_without_the_agent(backend, runner):
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    both = run_both(runner, SUBJECTS / "keras/copied.py", config=config, strict=True, **variables_of(backend))
    for agent, plain in zip(both.agent.stdout.splitlines(), both.plain.stdout.splitlines(), strict=True):
        assert agent == plain
    assert_untouched(both, stderr=False)
    assert "net epoch 1, eager False deepcopy" in both.plain.stdout
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [*range(16)]
    gradients = both.trial.tensor_names(collection="gradients")
    assert sum(len(both.trial.tensor(name).steps(mode=ModeKeys.TRAIN)) for name in gradients) == 2 * (4 * 4 + 4 * 2)
