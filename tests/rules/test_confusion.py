"""Confusion, on labels and predictions."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import Confusion


def of_matrix(matrix):
    """Labels and predictions of which there are so many in each pair of classes."""
    matrix = np.array(matrix)
    labels, predictions = np.indices(matrix.shape).reshape(2, -1)
    return np.repeat(labels, matrix.reshape(-1)), np.repeat(predictions, matrix.reshape(-1))


@pytest.fixture
def confused(written):
    """Write a step of each confusion matrix."""

    def write(*matrices):
        run = written(labels="^labels$", predictions="^predictions$")
        for matrix in matrices:
            labels, predictions = of_matrix(matrix)
            run.step(labels=labels, predictions=predictions)
        return run.ended()

    return write


GOOD = [[90, 5, 5], [5, 90, 5], [5, 5, 90]]


def test_classes_that_are_taken_for_each_other(confused):
    (found,) = confused(GOOD, [[90, 2, 0], [5, 70, 0], [0, 28, 40]]).findings(Confusion())
    assert (found.tensor, found.first_step) == ("predictions", 1)
    assert found.evidence == {
        "prediction": 1,
        "predicted": 100,
        "right": pytest.approx(0.7),
        "label": 2,
        "confused": pytest.approx(0.28),
    }


@pytest.mark.parametrize(
    "matrix, finds",
    [
        (GOOD, False),
        ([[90, 0, 0], [10, 90, 0], [0, 10, 90]], False),
        # 89 of 100 predictions of the first class are right.
        ([[89, 0, 0], [6, 90, 0], [5, 0, 90]], True),
        # The last class has labels, and is never predicted.
        ([[99, 0, 0], [0, 99, 0], [1, 0, 0]], True),
        # It has none either.
        ([[99, 0, 0], [0, 99, 0], [0, 0, 0]], False),
    ],
)
def test_the_least_that_must_be_right(confused, matrix, finds):
    assert bool(confused(matrix).findings(Confusion())) == finds


def test_the_most_of_one_other_class(confused):
    run = confused([[80, 0, 0], [11, 90, 0], [9, 0, 90]])
    assert run.findings(Confusion(min_diag=0.8)) != []
    assert run.findings(Confusion(min_diag=0.8, max_off_diag=0.11)) == []
    assert run.findings(Confusion(min_diag=0.81, max_off_diag=0.11)) != []


def test_check_applies_it_by_name_only():
    assert Confusion.only_by_name


def test_trees(boosted):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    labels = rows[:, :3].argmax(1)
    how = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3}
    run = boosted(how, rows, labels, 30)
    findings = run.findings(Confusion())
    trial = run.trial()
    for one in findings:
        predicted = np.asarray(trial.tensor("predictions").value(one.first_step)).argmax(1)
        of_class = labels[predicted == one.evidence["prediction"]]
        assert one.evidence["right"] == pytest.approx(np.mean(of_class == one.evidence["prediction"]))
        assert one.evidence["right"] < 0.9 or one.evidence["confused"] > 0.1
    last = np.asarray(trial.tensor("predictions").value(29)).argmax(1)
    assert (last == labels).mean() > 0.97
    assert findings[0].last_step < 29
    assert boosted({"max_depth": 2}, rows, rows[:, 0], 5).verdict(Confusion()).not_for_it == ["Confusion"]


def test_as_it_is_documented(confused, written, met_at):
    trial = confused(GOOD, [[89, 0, 0], [6, 90, 0], [5, 0, 90]]).trial()
    assert met_at(Confusion(base_trial=trial), trial) == [1]
    assert met_at(Confusion(base_trial=trial, category_no="3", min_diag="0.85", max_off_diag="0.2"), trial) == []
    rule = Confusion(base_trial=trial)
    assert (rule.category_no, rule.min_diag, rule.max_off_diag) == (None, 0.9, 0.1)
    assert (rule.labels, rule.predictions, rule.labels_collection, rule.predictions_collection) == (
        "labels",
        "predictions",
        "labels",
        "predictions",
    )
    run = written(truth="^t$")
    labels, predictions = of_matrix([[50, 50], [0, 100]])
    run.step(t=labels, guess=predictions)
    trial = run.ended().trial()
    named = {"labels": "labels", "labels_collection": "truth", "predictions": "guess"}
    assert met_at(Confusion(base_trial=trial, **named), trial) == [0]
    assert met_at(Confusion(base_trial=trial, labels="t", predictions="guess"), trial) == [0]
    assert met_at(Confusion(base_trial=trial, labels="t", predictions="nothing"), trial) == []


def test_what_is_lacking(written):
    run = written(labels="^labels$", predictions="^predictions$")
    run.step(means={"labels": 0.5, "predictions": 0.4})
    run.ended()
    (unjudged,) = run.verdict(Confusion()).not_judged
    assert (unjudged.reason, unjudged.option) == (
        "only statistics of labels or predictions were saved",
        "add --raw",
    )
    elsewhere = {"labels_collection": "mine", "predictions_collection": "mine"}
    (unjudged,) = run.verdict(Confusion(labels="t", predictions="guess", **elsewhere)).not_judged
    assert unjudged.reason == "t and guess were not saved in one step"
