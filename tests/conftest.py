"""What all tests share: no agent of the surrounding environment, and no waiting for runs that have ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("harness")

HERE = Path(__file__).parent
# Threads of OpenMP wait without using the processors, which several tests share.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Seconds that files take, by "make durations". The longest come first: at the end no processor shall wait for one.
DURATIONS = json.loads((HERE / "durations.json").read_text())
# Folders and files that "make test" leaves out and "make test-all" runs: they take long, build something, or hold our
# work against another library. So are tests marked "cold".
THOROUGH = (
    "accuracy",
    "compat",
    "robustness",
    "test_documents.py",
)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    def file(item):
        return item.path.relative_to(HERE).as_posix()

    for item in items:
        if file(item).startswith(THOROUGH) or item.get_closest_marker("cold"):
            item.add_marker("thorough")
    yield
    items.sort(key=lambda item: -DURATIONS.get(file(item), 0))


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
