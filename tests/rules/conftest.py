"""Trainings that rules are applied to: clean ones, made once, and those that a test makes with a fault in them."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness.written_runs import started

from smd_agent import create_trial, guard, session
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.framework import optimizer_settings
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.rules.judging import Judging

torch = pytest.importorskip("torch")

from harness.nothing_compiled import nothing_compiled

import smd_agent.pytorch as smd


def _loaded(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def others_have_not_compiled():
    with nothing_compiled():
        yield


CLEAN = _loaded("clean_trainings").TRAININGS
STATISTICS = {
    "reductions": ["statistics"],
    "save_raw_up_to": 64,
    "save_shape": True,
}


class Trained:
    """A run of a training that was captured with all statistics at every step."""

    def __init__(self, folder, training, every=1, blame=False):
        torch.manual_seed(0)
        guard.lines.said.clear()
        hook = smd.Hook(
            str(folder),
            save_config=smd.SaveConfig(save_interval=every),
            save_all=True,
            reduction_config=smd.ReductionConfig(**STATISTICS),
        )
        if blame:
            hook.name_culprits()

        def capture(*models):
            for model in models:
                hook.register_module(model)
            hook.set_mode(smd.modes.TRAIN)
            return hook

        try:
            with nothing_compiled():
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


def opened(folder):
    """A run that is there."""
    run = object.__new__(Trained)
    run.folder = str(folder)
    return run


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Make a folder once, for all processes that the tests are spread over."""

    def made(name, make):
        base = tmp_path_factory.getbasetemp()
        folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
        folder.mkdir(exist_ok=True)
        with open(folder / "made", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not os.fstat(file.fileno()).st_size:
                make(folder)
                file.write("all of it")
        return folder

    return made


def train_ranks(folder):
    script = Path(__file__).with_name("rank_trainings.py")
    done = subprocess.run([sys.executable, str(script), str(folder)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def train_clean(folder):
    for name, training in CLEAN.items():
        Trained(folder / name, training)


@pytest.fixture(scope="session")
def clean(made_once):
    """The clean trainings by name."""
    folder = made_once("clean", train_clean)
    return {name: opened(folder / name) for name in CLEAN}


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Make a run of a training."""

    def make(training, **arguments):
        # An optimizer of a test before may be there yet, and have a name that this one wants.
        monkeypatch.setattr(optimizer_settings, "_titles", WeakIdentityMap())
        return Trained(tmp_path / f"run{len([*tmp_path.iterdir()])}", training, **arguments)

    return make


class Written(Trained):
    """A run that a test writes itself: steps that count on in each mode, and collections by regex."""

    def __init__(self, folder, **collections):
        self.folder = str(folder)
        self._run = started(folder)
        manager = CollectionManager()
        for name, regex in collections.items():
            manager.get(name).include(regex)
        self._run.write_collections(manager.to_json())
        self._counts = {}
        self._step = 0

    def step(self, mode=smd.modes.TRAIN, means=None, **tensors):
        """Save tensors or texts, by names in which two underscores stand for a hyphen, or of others the mean alone."""
        file = self._run.begin_step(self._step, mode, self._counts.get(mode, 0))
        for name, value in tensors.items():
            if isinstance(value, str):
                file.add_text(name, [value])
            else:
                file.add(name.replace("__", "-"), np.asarray(value))
        for name, value in (means or {}).items():
            file.add_scalars((f"smdebug/reductions/mean/{name}",), np.array([value]))
            file.add_shape(name, name, (1000,))
        self._run.commit(file)
        self._counts[mode] = self._counts.get(mode, 0) + 1
        self._step += 1

    def ended(self):
        self._run.close(True)
        return self


@pytest.fixture
def written(tmp_path):
    """Begin a run that a test writes itself."""

    def begin(**collections):
        return Written(tmp_path / f"run{len([*tmp_path.iterdir()])}", **collections)

    return begin


@pytest.fixture(scope="session")
def ranks(made_once):
    """The trainings on two ranks by their way."""
    if not torch.distributed.is_available():
        pytest.skip("this torch has no torch.distributed")
    folder = made_once("ranks", train_ranks)
    return lambda way: opened(folder / way)


@pytest.fixture
def workers(tmp_path):
    """Write a run of several workers, which have all saved the same steps."""

    def make(values, steps, count):
        folder = tmp_path / f"run{len([*tmp_path.iterdir()])}"
        manager = CollectionManager()
        manager.set_num_workers(count)
        for name, regex in {"weights": "weight$", "input_digests": "^input_digest/"}.items():
            manager.get(name).include(regex)
        runs = [started(folder, f"worker_{worker}", alone=count == 1) for worker in range(count)]
        for worker, run in enumerate(runs):
            run.write_collections(manager.to_json())
            for step in range(steps):
                file = run.begin_step(step, smd.modes.TRAIN, step)
                for name, value in values(worker, step).items():
                    file.add(name, np.asarray(value))
                run.commit(file)
        for run in runs:
            run.close(True)
        return opened(folder)

    return make


@pytest.fixture
def boosted(tmp_path):
    """Make a run of an XGBoost training that saves all of each round."""
    xgboost = pytest.importorskip("xgboost")
    import smd_agent.xgboost as smd_xgboost

    def make(parameters, rows, labels, rounds=20, too=(), **evaluated):
        folder = tmp_path / f"run{len([*tmp_path.iterdir()])}"
        data = xgboost.DMatrix(rows, label=labels)
        sets = [(xgboost.DMatrix(*of), name) for name, of in evaluated.items()] or [(data, "train")]
        hook = smd_xgboost.Hook(
            str(folder),
            save_config=smd_xgboost.SaveConfig(save_interval=1),
            include_collections=["metrics", "labels", "predictions", "feature_importance", "trees", *too],
            hyperparameters=parameters,
            train_data=data,
            validation_data=sets[-1][0],
        )
        parameters = {"nthread": 1, "seed": 0, **parameters}
        try:
            booster = xgboost.train(parameters, data, rounds, evals=sets, verbose_eval=False, callbacks=[hook])
            hook.close()
        finally:
            session.forget()
        run = opened(folder)
        run.booster = booster
        return run

    return make


@pytest.fixture
def known_of_data(written):
    """Write what is known of an XGBoost training by its data and its call, at its first round."""
    xgboost = pytest.importorskip("xgboost")
    from smd_agent.xgboost.data_facts import data_facts_of

    def make(parameters, data, evals=(), obj=None, **call):
        told = {"evals": evals, "obj": obj}
        booster = xgboost.train({"nthread": 1, **parameters}, data, 1, **told, verbose_eval=False)
        facts = data_facts_of({"dtrain": data, "params": parameters, **told, **call}, booster)
        run = written(data_facts="^data_facts/")
        numbers = {f"data_facts/{name}": [number] for name, number in facts.items()}
        run.step(smd.modes.GLOBAL, **numbers, **{"test-rmse": [1.0]})
        return run.ended()

    return make


@pytest.fixture
def known_of_training(known_of_data):
    """Write what is known of an XGBoost training by its rows, labels and evaluation sets, and by its call."""
    xgboost = pytest.importorskip("xgboost")
    of_call = ("early_stopping_rounds", "num_boost_round", "xgb_model", "callbacks", "told_rounds")

    def make(parameters, rows, labels, **told):
        sets = [(xgboost.DMatrix(*of), name) for name, of in told.items() if name not in of_call]
        call = {name: told.get(name) for name in of_call}
        return known_of_data(parameters, xgboost.DMatrix(rows, label=labels), sets, **call)

    return make


@pytest.fixture
def met_at():
    """The steps at which a rule of a program says that its condition is met."""
    return lambda rule, trial: [step for step in trial.steps() if rule.invoke_at_step(step)]
