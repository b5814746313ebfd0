"""WeightOfRareClass, on weights that a test writes and on those of a training."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import WeightOfRareClass
from smd_agent.rules.finding import Severity

PROBLEM, WARNING, NOTE = Severity.PROBLEM, Severity.WARNING, Severity.NOTE


@pytest.fixture
def labelled(written):
    """Write what is known of the labels of a training."""

    def write(positives, negatives, weight, of_rows=1.0):
        run = written(data_facts="^data_facts/")
        numbers = {"positives": positives, "negatives": negatives, "scale_pos_weight": weight, "sample_weight": of_rows}
        run.step(ModeKeys.GLOBAL, **{f"data_facts/labels/train/{name}": [number] for name, number in numbers.items()})
        return run.ended()

    return write


@pytest.mark.parametrize(
    "positives, negatives, weight, severity",
    [
        (100, 1000, 0.1, PROBLEM),
        (237, 2763, float(np.float32(237 / 2763)), PROBLEM),
        (100, 1000, 0.10011, WARNING),
        # Of other labels, such as those of the whole table: within a quarter.
        (100, 1000, 0.1249, WARNING),
        (100, 1000, 0.0801, WARNING),
        (100, 1000, 0.126, NOTE),
        (100, 1000, 0.9, NOTE),
        (100, 1000, 1.0, None),
        # Two classes of which neither is rare.
        (995, 2005, 0.9, None),
        (2005, 995, 1.5, None),
        (251, 1000, 0.9, None),
        (250, 1000, 0.9, NOTE),
        (995, 2005, 995 / 2005, PROBLEM),
        (100, 1000, 10.0, None),
        (100, 1000, 3.0, None),
        (100, 1000, 1000.0, None),
        # The label 0 is the rare one.
        (1000, 100, 10.0, PROBLEM),
        (1000, 100, 0.1, None),
        # About as many of both.
        (501, 1000, 0.501, None),
        (500, 1000, 0.5, PROBLEM),
        (100, 1000, 0.0, None),
    ],
)
def test_the_quotient_the_wrong_way_round(labelled, positives, negatives, weight, severity):
    findings = labelled(positives, negatives, weight).findings(WeightOfRareClass())
    assert [one.severity for one in findings] == [severity] * (severity is not None)


def test_weights_of_rows_count_in(labelled):
    assert labelled(100, 1000, 0.1, of_rows=100.0).findings(WeightOfRareClass()) == []
    assert len(labelled(100, 1000, 0.1, of_rows=9.9).findings(WeightOfRareClass())) == 1
    # Rows that count nothing: there is no quotient.
    assert labelled(100, 1000, 0.1, of_rows=float("inf")).findings(WeightOfRareClass()) == []


def test_what_is_said(labelled):
    (found,) = labelled(100, 1000, 0.1).findings(WeightOfRareClass())
    assert found.tensor == "data_facts/labels/train/scale_pos_weight"
    assert found.evidence == {"scale_pos_weight": 0.1, "positives": 100, "negatives": 1000, "balanced": 10}
    assert "labels of 1 by that of 0" in found.cause
    (meant,) = labelled(100, 1000, 0.5).findings(WeightOfRareClass())
    assert "false alarms" in meant.cause


@pytest.mark.parametrize("wrong", [False, True])
def test_a_training(wrong, known_of_training):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4))
    labels = (rows[:, 0] > 1.2).astype(int)
    ratio = (labels == 0).sum() / (labels == 1).sum()
    how = {"objective": "binary:logistic", "scale_pos_weight": 1 / ratio if wrong else ratio}
    findings = known_of_training(how, rows, labels).findings(WeightOfRareClass())
    assert [one.severity for one in findings] == [PROBLEM] * wrong


def test_a_training_of_no_two_classes_is_not_for_it(known_of_training):
    rows = np.random.default_rng(0).normal(size=(100, 4))
    assert known_of_training({}, rows, rows[:, 0]).verdict(WeightOfRareClass()).not_for_it == ["WeightOfRareClass"]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(WeightOfRareClass()).findings)} == {}
