"""How many examples each property is tried on: 200, the same each time; with ``SMD_EXAMPLES`` so many others."""

from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, settings

from smd_agent import guard, session
from smd_agent.core import reductions

# Examples are made by NumPy from a few numbers that are drawn: what is slow is never the drawing.
COMMON = {"deadline": None, "database": None, "suppress_health_check": [*HealthCheck], "print_blob": True}
EXAMPLES = int(os.environ.get("SMD_EXAMPLES", "0"))

settings.register_profile("ci", max_examples=200, derandomize=True, **COMMON)
settings.register_profile("long", max_examples=EXAMPLES or 20_000, **COMMON)
settings.load_profile("long" if EXAMPLES else "ci")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("long") and not EXAMPLES:
            item.add_marker(pytest.mark.skip(reason="takes gigabytes of memory: run with SMD_EXAMPLES"))


@pytest.fixture(autouse=True)
def own_hook():
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    guard.lines.said.clear()
    yield
    hook = session.current()
    if hook is not None:
        hook.disable()
    session.forget()


@pytest.fixture(params=["numpy", "kernel"])
def implementation(request):
    """Each way of computing reductions in turn; the kernel only where the package was installed with one."""
    before = reductions.has_kernel()
    used = reductions.use_kernel(request.param == "kernel")
    if used != (request.param == "kernel"):
        pytest.skip("the package was installed without the compiled kernel")
    yield request.param
    reductions.use_kernel(before)
