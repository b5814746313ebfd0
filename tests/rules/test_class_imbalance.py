"""ClassImbalance, on labels and predictions, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import ClassImbalance
from smd_agent.rules.finding import Severity


def classes(counts, wrong):
    """Labels of so many of each class, of which so many are predicted as the next class."""
    labels = np.repeat(np.arange(len(counts)), counts)
    predictions = labels.copy()
    for number, bad in enumerate(wrong):
        predictions[np.flatnonzero(labels == number)[:bad]] = (number + 1) % len(counts)
    return labels, predictions


@pytest.fixture
def labelled(written):
    """Write steps of these labels and predictions."""

    def write(*steps):
        run = written(labels="^labels$", predictions="^predictions$")
        for labels, predictions in steps:
            run.step(labels=labels, predictions=predictions)
        return run.ended()

    return write


def test_a_rare_class_that_is_never_predicted(labelled):
    (found,) = labelled(classes((520, 300, 30), (0, 0, 29))).findings(ClassImbalance(patience=1))
    assert (found.severity, found.tensor) == (Severity.NOTE, "labels")
    assert found.evidence == {
        "class": 2,
        "labels": 30,
        "largest": 520,
        "imbalance": pytest.approx(520 / 30),
        "wrong": pytest.approx(29 / 30),
    }


@pytest.mark.parametrize(
    "counts, wrong, finds",
    [
        ((520, 300, 30), (0, 0, 27), False),
        ((520, 300, 30), (0, 0, 28), True),
        ((500, 300, 50), (0, 0, 50), False),
        ((510, 300, 50), (0, 0, 50), True),
        # Of fewer than 10 labels nothing is said.
        ((520, 300, 9), (0, 0, 9), False),
        ((520, 300, 10), (0, 0, 10), True),
        # A common class that is predicted wrong, and a rare one that is predicted right.
        ((300, 300, 300), (300, 0, 0), False),
        ((600, 300, 30), (600, 0, 0), False),
    ],
)
def test_both_must_hold(labelled, counts, wrong, finds):
    assert bool(labelled(classes(counts, wrong)).findings(ClassImbalance(patience=1))) == finds


def test_labels_are_gathered(labelled):
    step = classes((104, 60, 4), (0, 0, 4))
    other = (step[0][::-1], step[1][::-1])
    few = labelled(step, other).verdict(ClassImbalance(patience=1))
    assert (few.judged, few.not_for_it) == ([], [])
    assert few.not_judged[0].reason == "it takes 500 labels to judge, and there are 336"
    assert labelled(step, other).findings(ClassImbalance(patience=1, samples=336)) == []
    (found,) = labelled(step, other, step).findings(ClassImbalance(patience=1, samples=504))
    assert (found.first_step, found.evidence["labels"]) == (2, 12)


def test_the_same_rows_once_more_are_no_more_rows(labelled):
    """Those of an evaluation set, of which every round has the predictions."""
    assert labelled(*[classes((104, 60, 9), (0, 0, 9))] * 9).findings(ClassImbalance()) == []
    (found,) = labelled(*[classes((104, 60, 10), (0, 0, 10))] * 9).findings(ClassImbalance())
    assert found.evidence["labels"] == 30


BAD, WELL = classes((520, 300, 30), (0, 0, 30)), classes((520, 300, 30), (0, 0, 0))


@pytest.mark.parametrize(
    "steps, finds",
    [
        ((BAD, BAD, BAD), True),
        ((BAD, BAD), False),
        ((WELL, BAD, BAD, BAD), True),
        ((BAD, BAD, BAD, WELL), False),
        ((BAD, WELL, BAD, BAD), False),
    ],
    ids=["all", "few", "to_the_end", "learned_later", "interrupted"],
)
def test_so_many_times_in_a_row(labelled, steps, finds):
    assert bool(labelled(*steps).findings(ClassImbalance())) == finds


def one_hot(numbers, of=3):
    return np.eye(of, dtype=np.float32)[numbers]


SHAPES = {
    "scores": lambda labels, predictions: (labels, one_hot(predictions) * 0.5 + 0.1),
    "columns": lambda labels, predictions: (labels.astype(np.float32)[:, None], predictions.astype(np.float32)),
    "one_hot": lambda labels, predictions: (one_hot(labels), one_hot(predictions) - 0.3),
    "sequences": lambda labels, predictions: (labels.reshape(5, -1), one_hot(predictions).reshape(5, -1, 3)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shapes_of_labels_and_predictions(labelled, shape):
    labels, predictions = classes((520, 300, 30), (0, 0, 29))
    (found,) = labelled(shape(labels, predictions)).findings(ClassImbalance(patience=1))
    assert (found.evidence["class"], found.evidence["labels"]) == (2, 30)
    assert found.evidence["wrong"] == pytest.approx(29 / 30)


def test_probabilities_of_two_classes(labelled):
    labels, predictions = classes((600, 40), (0, 39))
    probabilities = np.where(predictions == 1, 0.51, 0.49).astype(np.float32)
    (found,) = labelled((labels, probabilities)).findings(ClassImbalance(patience=1))
    assert found.evidence["wrong"] == pytest.approx(39 / 40)


@pytest.mark.parametrize(
    "labels, predictions",
    [
        (np.linspace(-2, 7, 600), np.linspace(-2, 7, 600)),
        (np.arange(600) % 7, np.linspace(0, 7, 600)),
        (np.arange(600) % 2, np.linspace(-3, 3, 600)),
        (np.arange(600) % 2, np.linspace(-3, 0.9, 600)),
        (np.arange(600) % 2, np.full(600, np.nan)),
    ],
)
def test_what_is_no_classification_is_not_for_it(labelled, labels, predictions):
    verdict = labelled((labels, predictions)).verdict(ClassImbalance(patience=1))
    assert (verdict.findings, verdict.not_for_it) == ([], ["ClassImbalance"])


def test_statistics_are_not_enough(written):
    run = written(labels="^labels$", predictions="^predictions$")
    run.step(means={"labels": 0.5, "predictions": 0.4})
    (unjudged,) = run.ended().verdict(ClassImbalance(patience=1)).not_judged
    assert unjudged.reason == "only statistics of labels or predictions were saved"
    assert unjudged.option == "add --raw"


def test_trees_of_a_rare_class(boosted):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 4))
    labels = (np.arange(900) % 20 == 0).astype(int)
    how = {"objective": "binary:logistic", "max_depth": 2}
    (found,) = boosted(how, rows, labels, 6).findings(ClassImbalance())
    assert (found.tensor, found.evidence["class"], found.evidence["labels"]) == ("labels", 1, 45)
    assert boosted(how, rows + 9 * labels[:, None], labels, 15).findings(ClassImbalance()) == []
    verdict = boosted({"max_depth": 2}, rows, rows[:, 0], 5).verdict(ClassImbalance())
    assert verdict.not_for_it == ["ClassImbalance"]


def test_as_it_is_documented(written, met_at):
    run = written()
    for counts, wrong in (((300, 200), (0, 0)), ((510, 50), (0, 0)), ((300, 200), (0, 141)), ((300, 200), (0, 140))):
        labels, predictions = classes(counts, wrong)
        run.step(my_labels=labels, my_predictions=predictions)
    trial = run.ended().trial()
    assert met_at(ClassImbalance(base_trial=trial), trial) == [1, 2]
    assert met_at(ClassImbalance(base_trial=trial, threshold_imbalance="10.2"), trial) == [2]
    assert met_at(ClassImbalance(base_trial=trial, threshold_misprediction="0.71"), trial) == [1]
    # The labels of steps 0 and 1 together are 10.2 to 1 no more.
    assert met_at(ClassImbalance(base_trial=trial, samples="501", threshold_misprediction="0.9"), trial) == []
    assert met_at(ClassImbalance(base_trial=trial, labels_regex="nothing"), trial) == []
    rule = ClassImbalance(base_trial=trial)
    assert (rule.threshold_imbalance, rule.threshold_misprediction, rule.samples, rule.argmax) == (10, 0.7, 500, False)
    assert (rule.labels_regex, rule.predictions_regex) == (".*labels", ".*predictions")


def test_an_axis_of_classes_that_is_named(written, met_at):
    labels, predictions = classes((300, 200), (0, 200))
    run = written()
    run.step(labels=labels.reshape(-1, 1), predictions=one_hot(predictions, 2).reshape(-1, 1, 2))
    trial = run.ended().trial()
    assert met_at(ClassImbalance(base_trial=trial, argmax="True"), trial) == [0]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(ClassImbalance()).findings)} == {}
