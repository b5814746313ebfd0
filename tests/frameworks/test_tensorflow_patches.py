"""Patches of TensorFlow, and wrappers that a program puts around all of them."""

from __future__ import annotations

import importlib.util
import json

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

from harness.compare import Both, assert_same_values, assert_untouched, saved_values
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

PROGRAM = SUBJECTS / "tensorflow/wrapped.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
CONFIG = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("weights", "gradients", "losses")],
}
EXPECTED = {
    ("GradientTape", "__enter__"),
    ("GradientTape", "gradient"),
    ("Optimizer", "compute_gradients"),
    ("Optimizer", "apply_gradients"),
    ("MonitoredSession", "__init__"),
    ("SingularMonitoredSession", "__init__"),
}


def by_agent(runner, name, *files):
    done = runner.by_variable(PROGRAM, *map(str, files), name=name, config=CONFIG, SMD_AGENT_STRICT="1", **QUIET)
    assert done.returncode == 0, done.stderr
    return done, runner.folder / name


def test_wrappers_around_all_patches_stay_and_change_nothing(runner):
    register = runner.folder / "register.json"
    _, bare = by_agent(runner, "bare", register)
    found = json.loads(register.read_text())
    assert {(owner.split(".")[-1], name) for _, owner, name in found["before"]} >= EXPECTED
    assert {"scale_loss", "get_scaled_loss"} & {name for _, _, name in found["after"]}
    listed = runner.folder / "attributes.json"
    listed.write_text(json.dumps(found["after"]))
    plain = runner.plain(PROGRAM, str(runner.folder / "none.json"), str(listed), **QUIET)
    for owner, name in EXPECTED:
        assert f"a {owner}.{name}" in plain.stdout
    # Estimators are there up to TensorFlow 2.15.
    assert ("_call_model_fn" in plain.stdout) == any(name == "_call_model_fn" for *_, name in found["after"])
    both = Both(plain, *by_agent(runner, "covered", register, listed))
    assert_untouched(both, stderr=False)
    # Whoever has wrapped a function that is replaced: it is not replaced once more.
    assert json.loads(register.read_text())["after"] == found["after"]
    expected = saved_values(create_trial(str(bare)))
    assert len({(name, step) for name, _, step in expected}) > 100
    assert_same_values(saved_values(both.trial), expected)
