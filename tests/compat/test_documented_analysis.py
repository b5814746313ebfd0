"""What smdebug's documentation shows of reading a run, with the package's name changed: the answers are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smd_agent import errors, exceptions
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_writer import RunWriter

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
EXAMPLES = Path(__file__).parent / "analysis_examples.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two modes, every tenth step of training, in which gradients fade and a weight slows down."""
    folder = tmp_path_factory.mktemp("analysis") / "run"
    writer = RunWriter(str(folder))
    writer.start("worker_0", True)
    manager = CollectionManager()
    for collection, pattern in (("gradients", "^gradient"), ("losses", "^loss"), ("weights", "^a_weight")):
        manager.get(collection).include(pattern)
    writer.write_collections(manager.to_json())
    number = 0
    for mode, mode_step in [(ModeKeys.TRAIN, step) for step in range(0, 50, 10)] + [
        (ModeKeys.EVAL, 0),
        (ModeKeys.EVAL, 1),
    ]:
        number = mode_step if mode is ModeKeys.TRAIN else 50 + mode_step
        file = writer.begin_step(number, mode, mode_step)
        file.add("loss", np.array(float(100 - number), np.float32))
        if mode is ModeKeys.TRAIN:
            file.add("a_weight", np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3) * (1 + 0.5 / (1 + mode_step)))
            file.add("gradient/a_bias", np.full(3, -(10.0**-mode_step), np.float64))
        writer.commit(file)
    writer.close(True)
    return folder


def answers(python, package, run):
    environment = {**os.environ, "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    command = [python, "-W", "ignore", str(EXAMPLES), package, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_ours_answer(run):
    ours = answers(sys.executable, "smd_agent", run)
    assert ours["names of a collection"] == ["gradient/a_bias"]
    assert ours["steps"] == [[0, 10, 20, 30, 40, 50, 51], [0, 10, 20, 30, 40], [0, 1]]
    assert ours["a rule until it is met"][0] == "met"
    assert ours["a rule until it is met"][2] == 10


@pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter")
def test_as_smdebug_answers(run):
    old, ours = answers(OLD_PYTHON, "smdebug", run), answers(sys.executable, "smd_agent", run)
    assert ours == old


def test_all_exceptions_have_smdebugs_name():
    ours = {"ConfigError", "DamagedRecord", "ReductionUnavailableForStep"}
    found = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}
    assert set(exceptions.__all__) == found - ours
