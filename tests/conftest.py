"""What all tests share: no agent of the surrounding environment, and no waiting for runs that have ended."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("harness")

HERE = Path(__file__).parent
# Threads of OpenMP wait without using the processors, which several tests share.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Folders whose tests take longest come first: at the end no processor shall wait for one long file.
ORDER = ("frameworks", "compat", "process")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    def place(item):
        folder = item.path.relative_to(HERE).parts[0]
        return ORDER.index(folder) if folder in ORDER else len(ORDER)

    items.sort(key=place)


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
