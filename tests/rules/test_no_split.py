"""NoSplit, on trees of XGBoost."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import NoSplit
from smd_agent.rules.finding import Severity

ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = ROWS[:, 0]
FAULTS = {
    "labels": ({}, ROWS, np.full(60, 3.0)),
    "features": ({}, np.ones((60, 3)), LABELS),
    "gamma": ({"gamma": 1e6}, ROWS, LABELS),
    "several trees a round": ({"num_parallel_tree": 4}, np.full((60, 3), np.nan), LABELS),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_trees_of_one_leaf(boosted, fault):
    how, rows, labels = FAULTS[fault]
    (found,) = boosted(how, rows, labels, 5).findings(NoSplit())
    assert (found.severity, found.tensor, found.mode) == (Severity.PROBLEM, None, ModeKeys.GLOBAL)
    assert (found.first_step, found.last_step, found.steps) == (2, 4, 3)
    assert found.evidence == {"trees": how.get("num_parallel_tree", 1)}


def test_trees_that_split(boosted):
    assert boosted({"max_depth": 2}, ROWS, LABELS, 5).findings(NoSplit()) == []
    assert boosted({"gamma": 1e6}, ROWS, LABELS, 2).verdict(NoSplit()).not_judged[0].rule == "NoSplit"


@pytest.mark.parametrize(
    "largest, first, finds", [([0] * 4, 0, 1), ([0, 0, 0, 2], 0, 0), ([2, 0, 0, 0], 0, 0), ([0] * 4, 1, 0)]
)
def test_rounds_of_which_one_splits_and_late_ones_alone(written, largest, first, finds):
    run = written(trees="^trees/")
    run._step += first
    for node in largest:
        run.step(ModeKeys.GLOBAL, **{"trees/Node": np.arange(node + 1)})
    assert len(run.ended().findings(NoSplit())) == finds
