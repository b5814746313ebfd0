"""The agent's functions between a program and its framework: no warning names them, no traceback shows them."""

from __future__ import annotations

import importlib.util
import re

import pytest
from harness.compare import assert_untouched, run_both
from harness.keras_ways import QUIET
from harness.runner import SUBJECTS

# Keras's warm process: TensorFlow must not be loaded beside torch in one of them.
PROGRAMS = {
    "torch": "pytorch/callers_scenes.py",
    "mxnet": "mxnet/callers_scenes.py",
    "xgboost": "xgboost/callers_program.py",
    "tensorflow": "keras/callers_programs.py",
}


@pytest.mark.parametrize("framework", PROGRAMS)
def test_warnings_and_tracebacks_are_those_of_a_run_without_the_agent(framework, module_runner):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"there is no {framework}")
    runner = module_runner(framework)
    runner.warm = (framework,)
    config = {"HookParameters": {"save_interval": 2, "save_all": True}}
    both = run_both(runner, SUBJECTS / PROGRAMS[framework], config=config, strict=True, **QUIET)
    # XGBoost before 2 prints the time.
    assert_untouched(both, seen=lambda text: re.sub(r"\[[\d:]+\]", "", text), stderr=False)
    assert len(both.trial.steps()) >= 2
    assert both.plain.stdout.count("callers [") > 2
