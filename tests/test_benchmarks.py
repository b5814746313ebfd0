"""Benchmarks: what they import of the agent is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOAD = """
import importlib, sys
arms = importlib.import_module(sys.argv[1])
for load in {arm.load for arm in arms.ARMS.values()} - {getattr(arms, "load_old", None)}:
    load()
"""


@pytest.mark.parametrize(
    "arms, framework",
    [("arms", "torch"), ("tensorflow_arms", "tensorflow"), ("boosting_arms", "xgboost"), ("gluon_arms", "mxnet")],
)
def test_the_agents_variants_can_be_loaded(arms, framework):
    pytest.importorskip(framework)
    # The repository comes last on the path: an installed agent goes before its own.
    program = f"import sys; sys.path.append({str(ROOT)!r}){LOAD}"
    command = [sys.executable, "-c", program, f"benchmarks.{arms}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
