"""Patches of PyTorch and wrappers that a program puts around them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize("when", ["early", "late", "inside"])
@pytest.mark.parametrize("interval", [1, 2])
def test_wrappers_of_a_profiler_stay_and_count_as_without_the_agent(runner, when, interval):
    script = runner.script("torch_profiled.py")
    plain = runner.plain(script, when)
    config = {"HookParameters": {"save_interval": interval, "save_all": True}}
    agent = runner.by_variable(script, when, config=config, SMD_AGENT_STRICT="1")
    assert (plain.returncode, plain.stderr) == (0, "")
    assert "'backward': 6" in plain.stdout or when == "inside"
    assert (agent.returncode, agent.stdout) == (0, plain.stdout), agent.stderr
