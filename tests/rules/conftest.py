"""Trainings that rules are applied to: clean ones, made once, and those that a test makes with a fault in them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from smd_agent import create_trial, guard, session
from smd_agent.rules.judging import Judging

torch = pytest.importorskip("torch")

import smd_agent.pytorch as smd


def _loaded(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLEAN = _loaded("clean_trainings").TRAININGS
STATISTICS = {
    "reductions": ["statistics"],
    "save_raw_up_to": 64,
    "save_shape": True,
}


class Trained:
    """A run of a training that was captured with all statistics at every step."""

    def __init__(self, folder, training, every=1):
        torch.manual_seed(0)
        guard._said.clear()
        hook = smd.Hook(
            str(folder),
            save_config=smd.SaveConfig(save_interval=every),
            save_all=True,
            reduction_config=smd.ReductionConfig(**STATISTICS),
        )

        def capture(*models):
            for model in models:
                hook.register_module(model)
            hook.set_mode(smd.modes.TRAIN)
            return hook

        try:
            training(capture)
            hook.close()
        finally:
            hook.disable()
            session.forget()
        self.folder = str(folder)

    def trial(self):
        trial = create_trial(self.folder, timeout=0)
        trial.maybe_refresh()
        trial.take_as_it_is()
        return trial

    def verdict(self, *rules):
        judging = Judging(self.trial(), rules)
        judging.take_new()
        return judging.verdict()

    def findings(self, rule):
        """The findings of one rule, which must be able to judge."""
        verdict = self.verdict(rule)
        assert verdict.judged == [rule.rule_name], (verdict.not_judged, verdict.not_for_it)
        assert verdict.problems == []
        return verdict.findings


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The clean trainings by name."""
    return {name: Trained(tmp_path_factory.mktemp(name) / "run", training) for name, training in CLEAN.items()}


@pytest.fixture
def trained(tmp_path):
    """Make a run of a training."""

    def make(training, **arguments):
        return Trained(tmp_path / f"run{len([*tmp_path.iterdir()])}", training, **arguments)

    return make
