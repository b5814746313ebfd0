"""What all tests share: no agent of the surrounding environment, and no waiting for runs that have ended."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("harness")

HERE = Path(__file__).parent
# Threads of OpenMP wait without using the processors, which several tests share.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# A shell that runs tests in the background has them, and what they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Seconds that files take, by "make durations". The longest come first, so that no processor waits for one at the end;
# before them those that nobody has measured.
DURATIONS = json.loads((HERE / "durations.json").read_text())
# Folders and files that "make test" leaves out and "make test-all" runs. So are tests marked "cold".
THOROUGH = (
    # Our work beside that of the real smdebug; many trainings, faults and examples; what is built.
    "accuracy",
    "compat",
    "properties",
    "robustness",
    "process/test_stores.py",
    "process/test_wheel.py",
    "test_documents.py",
    # A framework in each test; several processes or a compiler, or a wait for the time that a verdict has.
    "frameworks/test_fact_table.py",
    "frameworks/test_pytorch_compile_scenes.py",
    "frameworks/test_pytorch_distributed.py",
    "frameworks/test_tensorflow_canned_estimators.py",
    "frameworks/test_tensorflow_estimator.py",
    "frameworks/test_tensorflow_keras_workers.py",
    "frameworks/test_verdict.py",
    "frameworks/test_xgboost_dask.py",
    # Interpreters that start as the user's do: beside files that are called as libraries, without one framework, with
    # little room on the stack, without a training, or again after they were killed.
    "frameworks/test_nothing_captured.py",
    "frameworks/test_one_room_per_framework.py",
    "frameworks/test_pytorch_stack.py",
    "frameworks/test_restarts.py",
    "frameworks/test_restarts_elsewhere.py",
    "frameworks/test_shadowed_libraries.py",
    "process/test_what_the_script_sees.py",
    # A page of the documentation is made.
    "frameworks/test_pytorch_scenarios.py",
    # Programs of one field each; those of every field are quick.
    "frameworks/test_pytorch_special_programs.py",
)


def pytest_ignore_collect(collection_path, config):
    # Files that only have what is left out are not imported, nor are the frameworks that they import.
    if config.option.markexpr == "not thorough" and collection_path.is_relative_to(HERE):
        return collection_path.relative_to(HERE).as_posix().startswith(THOROUGH) or None
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    def file(item):
        return item.path.relative_to(HERE).as_posix()

    for item in items:
        if file(item).startswith(THOROUGH) or item.get_closest_marker("cold"):
            item.add_marker("thorough")
    yield
    items.sort(key=lambda item: -DURATIONS.get(file(item), math.inf))


@pytest.fixture(autouse=True, scope="module")
def what_lasts_is_frozen():
    """Hides what is there before a file's tests from the garbage collector, whose searches would take most of the time.

    Those are libraries and tests; of trainings before, it hides what might be taken for objects of the next one.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("SMD_AGENT_", "SMDEBUG_")) and name not in ("SMDEBUG_PYTHON", "SMDEBUG_MXNET_PYTHON"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("USE_SMDEBUG", raising=False)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    # A disk that one test has let stand still is none of the next one's.
    if stalled_disk := sys.modules.get("smd_agent.stalled_disk"):
        monkeypatch.setattr(stalled_disk, "_standing", [])


@pytest.fixture
def impatient():
    """Fails a test that waits for twenty seconds in one system call, such as one that opens a pipe."""

    def fail(signum, frame):
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
