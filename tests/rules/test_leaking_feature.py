"""LeakingFeature, on trees with a column that was made from the label, and on what a test writes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import LeakingFeature
from smd_agent.rules.finding import Severity

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 8))
LABELS = (ROWS[:, 0] + ROWS[:, 1] + RNG.normal(size=400) > 0.8).astype(int)
TOO = ["average_shap"]


@pytest.mark.parametrize("how", [{"objective": "binary:logistic"}, {"objective": "binary:logistic", "eta": 0.01}])
def test_a_column_made_from_the_label(boosted, how):
    rows = ROWS.copy()
    rows[:, 7] = LABELS + RNG.normal(size=400) / 100
    (found,) = boosted(how, rows, LABELS, too=TOO).findings(LeakingFeature())
    assert (found.severity, found.tensor) == (Severity.WARNING, "feature_importance/total_gain/f7")
    assert (found.first_step, found.last_step) == (0, 19)
    assert found.evidence == {"share": pytest.approx(1.0), "right": 1.0, "features": 8}


def test_a_column_that_numbers_several_classes(boosted):
    how = {"objective": "multi:softprob", "num_class": 3}
    labels = LABELS + (ROWS[:, 2] > 0)
    assert boosted(how, ROWS, labels, 5, too=TOO).findings(LeakingFeature()) == []
    (found,) = boosted(how, np.c_[ROWS, labels], labels, 5, too=TOO).findings(LeakingFeature())
    assert found.tensor == "feature_importance/total_gain/f8"


def test_data_without_such_a_column(boosted):
    assert boosted({"objective": "binary:logistic"}, ROWS, LABELS, too=TOO).findings(LeakingFeature()) == []
    cancer, iris = load_breast_cancer(), load_iris()
    assert (
        boosted({"objective": "binary:logistic"}, cancer.data, cancer.target, too=TOO).findings(LeakingFeature()) == []
    )
    # One of the species is told from the others by one leaf of two.
    easy = boosted({"objective": "binary:logistic"}, iris.data, iris.target == 0, too=TOO)
    assert easy.findings(LeakingFeature()) == []


def test_what_is_no_classification_is_not_for_it(boosted):
    run = boosted({}, ROWS, ROWS[:, 0] * 2, too=TOO)
    assert run.verdict(LeakingFeature()).not_for_it == ["LeakingFeature"]


@pytest.mark.parametrize(
    "changed, finds",
    [
        ({}, True),
        ({"share": 0.94}, False),
        ({"wrong": 1}, False),
        ({"rows": 98}, False),
        ({"ones": 20}, True),
        # Few rows of a class may be told apart by one feature.
        ({"ones": 19}, False),
        ({"features": 4}, False),
        ({"late": True}, False),
        ({"drops": True}, False),
    ],
)
def test_the_limits(written, changed, finds):
    size = changed.get("rows", 100)
    run = written(
        feature_importance="^feature_importance/",
        average_shap="^average_shap/",
        labels="^labels$",
        predictions="^predictions$",
    )
    labels = np.arange(size) % 2 if "ones" not in changed else (np.arange(size) < changed["ones"]).astype(int)
    for number in range(4):
        predictions = 0.4 + 0.1 * labels + np.arange(size) / 1e4
        is_off = (changed.get("late") and number == 0) or (changed.get("drops") and number == 3)
        wrong = 20 if is_off else changed.get("wrong", 0)
        predictions[:wrong] = 0.6
        share = changed.get("share", 0.95)
        gains = {"feature_importance/total_gain/f0": [share], "feature_importance/total_gain/f1": [1 - share]}
        shap = {f"average_shap/f{i}": [0.1] for i in range(changed.get("features", 5))}
        run.step(ModeKeys.GLOBAL, labels=labels, predictions=predictions, **gains, **shap)
    assert bool(run.ended().findings(LeakingFeature())) == finds
