"""Patches of MXNet and wrappers that a program puts around them."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from smd_agent.analysis.trial import create_trial


@pytest.mark.parametrize("wrapped", ["alike", "bare"])
def test_a_wrapper_around_backward_invents_no_losses(runner, wrapped):
    script = runner.script("gluon_profiled.py")
    plain = runner.plain(script, wrapped)
    config = {
        "HookParameters": {"save_interval": 1},
        "CollectionConfigurations": [{"CollectionName": "losses"}],
    }
    agent = runner.by_variable(script, wrapped, config=config, SMD_AGENT_STRICT="1")
    assert plain.returncode == 0, plain.stderr
    assert "'backward': 4" in plain.stdout
    assert (agent.returncode, agent.stdout) == (0, plain.stdout), agent.stderr
    trial = create_trial(str(runner.folder / "run"))
    assert trial.tensor_names() == ["loss0_output_0"]
    assert trial.tensor("loss0_output_0").steps() == [0, 1, 2, 3, 4, 5]
