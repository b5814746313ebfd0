"""Steps counted by forwards, as a hook file can ask for, are those that the original library counts."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import pytest
from harness import beside

pytest.importorskip("torch")

from smd_agent.analysis.trial import create_trial

SCRIPT = Path(__file__).with_name("train_with_forwards.py")
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
KINDS = runpy.run_path(str(SCRIPT))["KINDS"]

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)


def trained(folder, python, library, kind, parameters):
    hook_file = folder / f"{library}.json"
    collections = [{"CollectionName": name} for name in ("weights", "gradients")]
    content = {
        "LocalPath": str(folder / library),
        "HookParameters": {"save_interval": "1", **parameters},
        "CollectionConfigurations": collections,
    }
    hook_file.write_text(json.dumps(content))
    beside.run_script(python, SCRIPT, library, kind, hook_file, modules=("torch",))
    return create_trial(str(folder / library))


def weights(trial):
    return {name: trial.tensor(name).steps() for name in trial.tensor_names(collection="weights")}


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_of_a_model_is_a_step_as_they_count(tmp_path, kind):
    theirs = trained(tmp_path, OLD_PYTHON, "smdebug", kind, {})
    ours = trained(tmp_path, sys.executable, "smd_agent", kind, {"step": "forward"})
    assert ours.steps() == theirs.steps()
    assert weights(ours) == weights(theirs)


@pytest.mark.parametrize("kind, parameters, steps", [("accumulated", {}, 2), ("siamese", {"step": "Update"}, 3)])
def test_counted_by_updates_they_are_others(tmp_path, kind, parameters, steps):
    assert trained(tmp_path, sys.executable, "smd_agent", kind, parameters).steps() == [*range(steps)]
