"""FeatureImportanceOverweight, on importances that a test writes and on trees."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import FeatureImportanceOverweight
from smd_agent.rules.finding import Severity


@pytest.fixture
def importances(written):
    """Write rounds of the importances of features."""

    def write(*rounds):
        run = written(feature_importance="^feature_importance/")
        for shares in rounds:
            told = {f"feature_importance/weight/f{number}": [share] for number, share in enumerate(shares)}
            run.step(ModeKeys.GLOBAL, **told, **{"feature_importance/gain/f0": [1.0]})
        return run.ended()

    return write


def shares(few, others=9, most=0.5):
    """Three features that hold so much together, and others."""
    return [most * few, few / 4, few / 4, *[(1 - few) / others] * others]


def test_a_few_features(importances):
    (found,) = importances(*[shares(0.9)] * 3).findings(FeatureImportanceOverweight())
    assert (found.severity, found.tensor, found.mode) == (Severity.NOTE, None, ModeKeys.GLOBAL)
    assert found.evidence == {"share": pytest.approx(0.9), "features": 12, "most": pytest.approx(0.45)}


@pytest.mark.parametrize(
    "rounds, finds",
    [
        ([shares(0.81)] * 3, True),
        ([shares(0.79)] * 3, False),
        ([shares(0.9, 8)] * 3, False),
        ([shares(0.9)] * 2, False),
        ([shares(0.9)] * 5 + [shares(0.7)], False),
        ([shares(0.7)] + [shares(0.9)] * 3, True),
        ([[]] * 3, False),
    ],
)
def test_the_limits(importances, rounds, finds):
    assert bool(importances(*rounds).verdict(FeatureImportanceOverweight()).findings) == finds


def test_trees(boosted):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 20))
    how = {"objective": "binary:logistic", "max_depth": 4}
    labels = (rows[:, :10].sum(1) > 0).astype(int)
    assert boosted(how, rows, labels).findings(FeatureImportanceOverweight()) == []
    run = boosted({"max_depth": 4}, rows, np.sin(3 * rows[:, 0]) + 0.02 * rows.sum(1), 30)
    findings = run.findings(FeatureImportanceOverweight(threshold=0.3))
    scores = run.booster.get_score(importance_type="weight")
    assert len(scores) > 12
    share = sum(sorted(scores.values())[-3:]) / sum(scores.values())
    assert bool(findings) == (share > 0.3)


def test_as_it_is_documented(importances, met_at):
    trial = importances([1.0], shares(0.79), shares(0.81), [0.25] * 4).trial()
    assert met_at(FeatureImportanceOverweight(base_trial=trial), trial) == [0, 2]
    assert met_at(FeatureImportanceOverweight(base_trial=trial, threshold="0.74"), trial) == [0, 1, 2, 3]
    assert met_at(FeatureImportanceOverweight(base_trial=trial, threshold="0.74", nfeatures="2"), trial) == [0]
    other = FeatureImportanceOverweight(base_trial=trial, tensor_regex=".*feature_importance/gain")
    assert met_at(other, trial) == [0, 1, 2, 3]
    rule = FeatureImportanceOverweight(base_trial=trial)
    assert (rule.threshold, rule.nfeatures, rule.tensor_regex) == (0.8, 3, ".*feature_importance/weight")
