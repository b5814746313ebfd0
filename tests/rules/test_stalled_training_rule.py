"""StalledTrainingRule, on silences between steps and after the last one."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest
from harness.rule_runs import met, verdict, written

from smd_agent.rules import StalledTrainingRule


@pytest.fixture
def saved_at(tmp_path):
    """Write a run with steps that were saved at these times, in seconds."""

    def write(*times, ended=True):
        return written(tmp_path / "run", [{"x": np.ones(2)}] * len(times), times=times, ended=ended)

    return write


@pytest.mark.parametrize("silence, finds", [(1800, False), (1801, True)])
def test_between_two_steps(saved_at, silence, finds):
    trial = saved_at(1000, 1010, 1010 + silence, 1020 + silence)
    assert met(trial, StalledTrainingRule(base_trial=trial)) == [2] * finds
    assert met(trial, StalledTrainingRule(base_trial=trial, threshold="1799")) == [2]
    assert [one.evidence for one in verdict(trial, StalledTrainingRule()).findings] == [{"silence": silence}] * finds


@pytest.mark.parametrize("ago, ended, finds", [(1900, False, True), (1700, False, False), (1900, True, False)])
def test_after_the_last_step(saved_at, ago, ended, finds):
    now = time.time()
    trial = saved_at(now - ago - 10, now - ago, ended=ended)
    (*found,) = verdict(trial, StalledTrainingRule()).findings
    assert [one.first_step for one in found] == [1] * finds
    assert all(ago <= one.evidence["silence"] < ago + 60 for one in found)


def test_it_does_not_stop_the_training(saved_at, caplog):
    trial = saved_at(1000, 9000)
    with caplog.at_level(logging.WARNING, "smd_agent"):
        rule = StalledTrainingRule(base_trial=trial, stop_training_on_fire="True", training_job_name_prefix="mine")
        assert met(trial, rule) == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "smd_agent: StalledTrainingRule cannot stop the training: that needs a service of the cloud"
    ]
    assert StalledTrainingRule.only_by_name
