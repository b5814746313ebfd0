"""The comparer of runs with the agent and without: it notices what differs."""

from __future__ import annotations

from subprocess import CompletedProcess

import numpy as np
import pytest
from harness.compare import Both, assert_same_values, assert_untouched, sorted_lines


def ended(stdout="loss 1\nloss 2\n", stderr="", code=0):
    return CompletedProcess(["python"], code, stdout, stderr)


PLAIN = ended(stderr="12:00:01 slow\n")
AGENT = ended(stderr="smd_agent: saving all tensors\n12:00:07 slow\n")


def test_what_the_agent_says_and_the_time_may_differ():
    assert_untouched(Both(PLAIN, AGENT))
    assert Both(PLAIN, AGENT).said == ["smd_agent: saving all tensors"]


@pytest.mark.parametrize(
    "agent", [ended("loss 1\n"), ended("loss 2\nloss 1\n"), ended(code=1), ended(stderr="smd_agents: x\n")]
)
def test_another_output_or_end_is_noticed(agent):
    with pytest.raises(AssertionError):
        assert_untouched(Both(ended(), agent))


@pytest.mark.parametrize("code", [0, None])
def test_runs_that_fail_are_alike_only_where_that_is_asked_for(code):
    both = Both(ended(code=3), ended(code=3))
    if code is None:
        assert_untouched(both, code=None)
    else:
        with pytest.raises(AssertionError):
            assert_untouched(both)


def test_what_is_left_out_is_left_out():
    assert_untouched(Both(ended(), ended("loss 2\nloss 1\n")), seen=sorted_lines)
    assert_untouched(Both(ended(), ended(stderr="other\n")), stderr=False)
    with pytest.raises(AssertionError):
        assert_untouched(Both(PLAIN, AGENT), ours="smd_agent: nothing was captured")


@pytest.mark.parametrize("found", [{}, {"a": np.float32([1, 3])}, {"a": np.float64([1, 2])}])
def test_other_values_are_noticed(found):
    expected = {"a": np.float32([1, 2])}
    assert_same_values({"a": np.float32([1, 2])}, expected)
    with pytest.raises(AssertionError):
        assert_same_values(found, expected)
