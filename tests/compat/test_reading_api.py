"""All that smdebug 1.0.34 has for reading a run is here: each name, argument and default, and each exception.

``old_reading_api.json`` holds the facts. They are those of the code, which differs from what was published in places:
``create_trial`` takes no ``out_dir``, and there is no ``Trial.tensors`` and no ``Tensor.shapes``.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness.old_api import check

from smd_agent import create_trial, errors
from smd_agent.analysis.steps import StepState
from smd_agent.analysis.tensor import Tensor
from smd_agent.analysis.trial import LocalTrial, S3Trial, Trial
from smd_agent.core.modes import ModeKeys

HERE = Path(__file__).parent
OLD: dict[str, Any] = json.loads((HERE / "old_reading_api.json").read_text())
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
CLASSES = {"Trial": Trial, "LocalTrial": LocalTrial, "S3Trial": S3Trial, "Tensor": Tensor}
METHODS = [(name, method, asked) for name, methods in OLD["classes"].items() for method, asked in methods.items()]


def test_create_trial():
    check(create_trial, OLD["create_trial"])


@pytest.mark.parametrize("name, method, asked", METHODS, ids=[f"{name}.{method}" for name, method, _ in METHODS])
def test_methods(name, method, asked):
    check(getattr(CLASSES[name], method), asked)


def test_states_of_a_step():
    assert {state.name: state.value for state in StepState} == OLD["StepState"]


@pytest.mark.parametrize("name", OLD["errors"])
def test_exceptions(name):
    own = getattr(errors, name)
    assert set(OLD["errors"][name]["bases"]) <= {base.__name__ for base in own.__mro__}
    if "*args" not in OLD["errors"][name]["arguments"]:
        # The errors know no modes: None stands for GLOBAL in them.
        check(own.__init__, OLD["errors"][name]["arguments"].replace("ModeKeys.GLOBAL", "None"))


@pytest.mark.parametrize("error", [errors.TensorUnavailableForStep, errors.ShapeUnavailableForStep])
def test_an_error_without_a_mode_says_global(error):
    assert str(error("t", 1)) == str(error("t", 1, ModeKeys.GLOBAL))


@pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter with the old smdebug")
def test_the_facts_are_those_of_smdebug():
    environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off"}
    command = [OLD_PYTHON, "-W", "ignore", HERE / "reading_api.py"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=120)
    assert json.loads(done.stdout[done.stdout.index("{") :]) == OLD


def test_a_missing_argument_is_noticed():
    with pytest.raises((AssertionError, KeyError)):
        check(create_trial, OLD["create_trial"].replace("profiler", "other"))
    with pytest.raises(AssertionError):
        check(create_trial, OLD["create_trial"].replace("name=None", "name=x"))
    assert len(METHODS) > 25
