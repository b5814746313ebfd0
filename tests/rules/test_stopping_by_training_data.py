"""StoppingByTrainingData, on what a test writes of evaluation sets and on trainings."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import StoppingByTrainingData
from smd_agent.rules.finding import Severity

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 4))
LABELS = ROWS[:, 0] + RNG.normal(size=300)
TRAINED, OTHER = (ROWS[:200], LABELS[:200]), (ROWS[200:], LABELS[200:])


@pytest.mark.parametrize(
    "sets, finds",
    [
        ({"valid": OTHER, "train": TRAINED}, True),
        ({"train": TRAINED, "valid": OTHER}, False),
        ({"train": TRAINED}, True),
        ({"valid": OTHER}, False),
    ],
)
def test_the_last_set_is_what_early_stopping_goes_by(known_of_training, sets, finds):
    run = known_of_training({}, *TRAINED, early_stopping_rounds=5, **sets)
    assert bool(run.findings(StoppingByTrainingData())) == finds
    assert known_of_training({}, *TRAINED, **sets).findings(StoppingByTrainingData()) == []


def test_what_is_said(known_of_training):
    run = known_of_training({}, *TRAINED, early_stopping_rounds=5, valid=OTHER, train=TRAINED)
    (found,) = run.findings(StoppingByTrainingData())
    assert (found.severity, found.tensor) == (Severity.WARNING, "data_facts/evaluation/train/training_rows")
    assert found.evidence == {"stopping_rounds": 5, "other_sets": 1}
    assert "the last of the evaluation sets" in found.cause
    (alone,) = known_of_training({}, *TRAINED, early_stopping_rounds=5, train=TRAINED).findings(
        StoppingByTrainingData()
    )
    assert "no evaluation set has other rows" in alone.cause
    assert alone.evidence["other_sets"] == 0


def test_runs_without_evaluation_sets_are_not_for_it(known_of_training):
    verdict = known_of_training({}, *TRAINED).verdict(StoppingByTrainingData())
    assert verdict.not_for_it == ["StoppingByTrainingData"]


@pytest.mark.parametrize("facts, finds", [({"training_rows": 1}, False), ({"stopping_rounds": 5}, False)])
def test_one_fact_alone_is_nothing(written, facts, finds):
    run = written(data_facts="^data_facts/")
    run.step(ModeKeys.GLOBAL, **{f"data_facts/evaluation/a/b/{name}": [value] for name, value in facts.items()})
    assert bool(run.ended().verdict(StoppingByTrainingData()).findings) == finds


def test_clean_trainings_are_silent(clean):
    verdicts = {name: run.verdict(StoppingByTrainingData()).findings for name, run in clean.items()}
    assert {name: found for name, found in verdicts.items() if found} == {}
