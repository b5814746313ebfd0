"""Rules of programs for smdebug 1.0.34 do the same with ours: at the same steps, with the same errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_writer import RunWriter

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that both read: every tenth step, gradients that fade, one of which is missing at times."""
    folder = tmp_path_factory.mktemp("rules") / "run"
    writer = RunWriter(str(folder))
    writer.start("worker_0", True)
    manager = CollectionManager()
    manager.get("gradients").include("^gradient")
    writer.write_collections(manager.to_json())
    for step in range(0, 60, 10):
        file = writer.begin_step(step, ModeKeys.TRAIN, step)
        file.add("loss", np.array(float(step)))
        file.add("gradient/bias", np.full(3, -(10.0**-step)))
        if step != 30:
            file.add("gradient/a_weight", np.full((2, 2), 1.0))
        writer.commit(file)
    writer.close(True)
    return folder


def asked(python, package, run):
    environment = {**os.environ, "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    command = [python, "-W", "ignore", str(HERE / "old_rules.py"), package, str(run)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_rules_do_what_they_did(run):
    old, ours = asked(OLD_PYTHON, "smdebug", run), asked(sys.executable, "smd_agent", run)
    # smdebug leaves it switched off after some errors.
    old.pop("after")
    assert ours.pop("after") == [True, True]
    for part in old:
        assert ours[part] == old[part], part
    assert old["vanishing 1e-7"][0] == [10, 20, 40, 50, 10, 20, 10]
    assert old["required"][1] == [[step, ["loss"]] for step in (10, 20, 30, 40, 50)]
