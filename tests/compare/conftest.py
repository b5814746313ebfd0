"""Runs that are compared: trainings with one thing changed, and runs that a test writes itself."""

from __future__ import annotations

import numpy as np
import pytest
from harness.written_runs import started

from smd_agent import create_trial
from smd_agent.cli import main
from smd_agent.compare.runs import compare
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys

REGEXES = {
    "weights": "weight$",
    "losses": "loss$",
    "gradients": "^gradient/",
    "updates": "^update(_ratio)?/",
    "optimizer": "^optimizer/",
    "input_digests": "^input_digest/",
    "parameters": "^parameters/",
    "hyperparameters": "^hyperparameters/",
    "trees": "^trees/",
}


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture
def folders(tmp_path):
    """Give a new folder each time."""
    numbers = iter(range(100))
    return lambda: tmp_path / f"run{next(numbers)}"


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Make a run of the small training with something changed; each is made once."""
    pytest.importorskip("torch")
    from harness.changed_trainings import train

    made = {}

    def folder_of(form="statistics", every=1, **change):
        key = form, every, *sorted(change.items())
        if key not in made:
            made[key] = tmp_path_factory.mktemp("trained") / "run"
            train(made[key], form, every, change)
        return made[key]

    return folder_of


@pytest.fixture
def compared():
    """Compare two runs."""

    def of(*folders, **options):
        trials = [create_trial(str(folder), timeout=0) for folder in folders]
        for trial in trials:
            trial.maybe_refresh()
            trial.take_as_it_is()
        return compare(*trials, **options)

    return of


@pytest.fixture
def write(folders):
    """Write a run: of each worker, of each step, the tensors by name; reductions as a dict."""

    def save(file, name, value):
        if isinstance(value, str):
            file.add_text(name, [value])
        elif isinstance(value, dict):
            for reduction, of in value.items():
                file.add(f"smdebug/reductions/{reduction}/{name}", np.asarray(of))
            file.add_shape(name, name, (1000,))
        else:
            file.add(name, np.asarray(value))

    def make(*workers, mode=ModeKeys.TRAIN, start=0):
        folder = folders()
        for number, steps in enumerate(workers):
            run = started(folder, f"worker_{number}", len(workers) == 1)
            manager = CollectionManager()
            for name, regex in REGEXES.items():
                manager.get(name).include(regex)
            manager.set_num_workers(len(workers))
            run.write_collections(manager.to_json())
            for step, tensors in enumerate(steps, start):
                file = run.begin_step(step, mode, step)
                for name, value in tensors.items():
                    save(file, name, value)
                run.commit(file)
            assert run.flush()
            run.close(number == len(workers) - 1)
        return folder

    return make


@pytest.fixture
def diff(capsys):
    """Run the command: exit code, lines, and lines of stderr."""

    def call(*words):
        # Of trainings that were made just now.
        capsys.readouterr()
        code = main(["diff", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err.splitlines()

    return call
