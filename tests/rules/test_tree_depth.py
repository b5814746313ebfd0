"""TreeDepth, on trees of XGBoost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smd_agent.rules import TreeDepth
from smd_agent.rules.finding import Severity


@pytest.fixture
def trees(boosted):
    """Train trees of a depth on rows that can be split on and on."""

    def train(depth, rounds=4):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(1500, 5))
        labels = rng.normal(size=1500)
        return boosted({"max_depth": depth, "min_child_weight": 0, "reg_lambda": 0}, rows, labels, rounds)

    return train


def depths(run, step):
    """The base-2 logarithm of the largest number of a node, and the longest way, from XGBoost's own table."""
    table = run.booster[step : step + 1].trees_to_dataframe()
    children = {row.ID: (row.Yes, row.No) for row in table.itertuples() if row.Feature != "Leaf"}

    def below(node):
        return 1 + max(below(child) for child in children[node]) if node in children else 0

    return math.log2(table.Node.max()), below("0-0")


def test_deep_trees(trees):
    pytest.importorskip("pandas")
    run = trees(7)
    (found,) = run.findings(TreeDepth())
    depth, splits = depths(run, 0)
    assert splits == 7
    assert (found.severity, found.tensor, found.first_step, found.last_step) == (Severity.NOTE, None, 0, 3)
    assert found.evidence == {"depth": pytest.approx(depth), "node": round(2**depth), "splits": splits}


@pytest.mark.parametrize("depth, finds", [(3, False), (4, True)])
def test_the_limit(trees, depth, finds):
    """A full tree of depth 3 has nodes 0 to 14, one of depth 4 has nodes up to 30."""
    run = trees(depth)
    assert run.findings(TreeDepth()) == [] or finds
    assert bool(run.findings(TreeDepth())) == finds


def test_as_it_is_documented(trees, met_at):
    trial = trees(3).trial()
    largest = {step: max(trial.tensor("trees/Node").value(step)) for step in trial.steps()}
    assert met_at(TreeDepth(base_trial=trial), trial) == []
    limit = math.log2(max(largest.values()))
    assert met_at(TreeDepth(base_trial=trial, depth=str(limit)), trial) == []
    below = limit - 1e-6
    assert met_at(TreeDepth(base_trial=trial, depth=below), trial) == [
        step for step, node in largest.items() if math.log2(node) > below
    ]
    assert TreeDepth(base_trial=trial).depth == 4


def test_a_tree_without_splits(boosted, met_at):
    rows = np.zeros((20, 2))
    trial = boosted({"max_depth": 3}, rows, np.arange(20), 3).trial()
    assert met_at(TreeDepth(base_trial=trial, depth=0), trial) == []


def test_check_applies_it_by_name_only():
    assert TreeDepth.only_by_name
