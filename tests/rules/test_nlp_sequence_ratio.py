"""NLPSequenceRatio, on sequences with padding."""

from __future__ import annotations

import numpy as np
import pytest
from harness.rule_runs import found, met, verdict, written

from smd_agent.errors import SMDebugValueError
from smd_agent.rules import NLPSequenceRatio

NAME = "embedding0_input_0"


def tokens(zeros, threes=0, count=100):
    value = np.full(count, 7, np.int64)
    value[:zeros], value[zeros : zeros + threes] = 0, 3
    return {NAME: np.random.default_rng(0).permutation(value).reshape(4, -1)}


def test_as_it_is_documented(tmp_path):
    trial = written(tmp_path / "run", [tokens(50), tokens(51), tokens(0, 31), tokens(60, 30), {"x": np.zeros(3)}])
    for arguments, expected in (
        ({}, [1, 3]),
        ({"token_values": "3", "token_thresholds_percent": "30"}, [2]),
        ({"token_values": "3, 0", "token_thresholds_percent": "30, 59.5"}, [2, 3]),
        ({"token_values": "0", "token_thresholds_percent": "60"}, []),
        ({"tensor_regex": "^x$"}, [4]),
        ({"tensor_regex": ["^x$", "embedding"]}, [1, 3, 4]),
    ):
        assert met(trial, NLPSequenceRatio(base_trial=trial, **arguments)) == expected, arguments


def test_the_share_of_zeros_tells_of_token_0_alone(tmp_path):
    trial = written(tmp_path / "run", [{"Net_embed_input_0": {"zero_share": share}} for share in (0.5, 0.51)])
    assert found(trial, NLPSequenceRatio()) == {"Net_embed_input_0": (1, 1)}
    assert verdict(trial, NLPSequenceRatio()).findings[0].evidence == {"token": 0, "percent": pytest.approx(51)}
    both = NLPSequenceRatio(token_values="3,0", token_thresholds_percent="10,60")
    assert found(trial, both) == {}
    said = verdict(trial, NLPSequenceRatio(token_values="3", token_thresholds_percent="30"))
    assert [one.option for one in said.not_judged] == ["add inputs to --save, with --raw"]


@pytest.mark.parametrize("values, limits", [("0,1", "50"), ("a", "50"), ("0", "b")])
def test_wrong_parameters(values, limits):
    with pytest.raises(SMDebugValueError, match="as many whole numbers as percentages"):
        NLPSequenceRatio(token_values=values, token_thresholds_percent=limits)


def test_it_is_asked_by_name_only():
    assert NLPSequenceRatio.only_by_name
