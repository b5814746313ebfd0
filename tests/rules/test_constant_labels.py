"""ConstantLabels, on data that is not shuffled and on labels that are all the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import smd_agent.pytorch as smd
from smd_agent.rules import ConstantLabels
from smd_agent.rules.finding import Severity

SIZE = 9


def training_of(labels, loss=functional.cross_entropy):
    """Train with these labels, one tensor for each step."""

    def training(capture):
        model = nn.Linear(6, 4)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for y in labels:
            optimizer.zero_grad()
            loss(functional.log_softmax(model(torch.randn(len(y), 6)), 1), y).backward()
            optimizer.step()

    return training


def of(*classes, size=SIZE):
    return [torch.full((size,), one) for one in classes]


@pytest.mark.parametrize("loss", [functional.cross_entropy, nn.NLLLoss()])
def test_data_that_is_sorted_by_class(trained, loss):
    (found,) = trained(training_of(of(0, 0, 0, 1, 1, 1, 2), loss)).findings(ConstantLabels())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.last_step) == (4, 6)
    assert found.evidence == {"labels": SIZE, "classes": 4, "different_labels": 2}
    assert "not shuffled" in found.cause


def test_labels_that_are_always_the_same_may_be_meant(trained):
    (found,) = trained(training_of(of(*[0] * 6))).findings(ConstantLabels())
    assert (found.severity, found.evidence["different_labels"]) == (Severity.NOTE, 1)
    # Until there is another.
    (found,) = trained(training_of(of(*[0] * 6, 1))).findings(ConstantLabels())
    assert found.severity is Severity.WARNING


def test_beside_the_threshold(trained):
    assert trained(training_of(of(0, 0, 1, 1))).verdict(ConstantLabels()).findings == []
    assert trained(training_of(of(*[0] * 5, size=8))).findings(ConstantLabels()) == []
    mixed = of(0, 0, 1, 1, 1)
    mixed[2] = torch.tensor([0] * 8 + [1])
    assert trained(training_of(mixed)).findings(ConstantLabels()) == []


def test_labels_that_are_ignored_do_not_count(trained):
    labels = of(1, 1, 2, 2, 3, size=12)
    for y in labels:
        y[:2] = -100
    assert len(trained(training_of(labels)).findings(ConstantLabels())) == 1
    for y in labels:
        y[2:4] = -100
    assert trained(training_of(labels)).findings(ConstantLabels()) == []


def test_all_labels_ignored(trained):
    (found,) = trained(training_of(of(*[-100] * 5))).findings(ConstantLabels())
    assert found.severity is Severity.PROBLEM
    assert found.evidence == {"labels": 0, "classes": 4}
    assert trained(training_of(of(*[-100] * 4, 1))).findings(ConstantLabels()) == []


LOSS = "loss/categorical_crossentropy_0"


def facts(label, most=None, count=10, classes=3):
    numbers = {"labels": count, "classes": classes, "label_min": label, "label_max": label if most is None else most}
    return {f"usage/{LOSS}/{name}": value for name, value in numbers.items()}


def evaluated(written, evaluations, train=(0, 2), unseen=(), every=5):
    """A run with steps of evaluation between those of training."""
    run = written(usage="^usage/")
    for labels in evaluations:
        for _ in range(every):
            run.step(**facts(*train))
        for number, label in enumerate(labels):
            if number in unseen:
                run._step += 1
            run.step(smd.modes.EVAL, **facts(label))
    run.step(**facts(*train))
    return run.ended()


def test_an_evaluation_of_one_class(written):
    (found,) = evaluated(written, [[2] * 5, [2] * 5]).findings(ConstantLabels())
    assert (found.severity, found.mode, found.steps) == (Severity.WARNING, smd.modes.EVAL, 2)
    assert found.evidence == {"labels": 50, "classes": 3, "different_labels": 1}
    assert "evaluation are of one class" in found.cause


QUIET = {
    "sorted, and of all classes": {"evaluations": [[0] * 5 + [1] * 5 + [2] * 5] * 2},
    "steps are missing": {"evaluations": [[2] * 5] * 2, "unseen": (3,)},
    "its first step is missing": {"evaluations": [[2] * 5] * 2, "unseen": (0,)},
    "few labels": {"evaluations": [[2]] * 3},
}


@pytest.mark.parametrize("way", QUIET)
def test_evaluations_of_which_nothing_is_said(written, way):
    assert evaluated(written, **QUIET[way]).findings(ConstantLabels()) == []


def test_an_evaluation_is_no_news_where_training_has_one_class_too(written):
    (found,) = evaluated(written, [[2] * 5] * 2, train=(2, 2)).findings(ConstantLabels())
    assert (found.severity, found.mode) == (Severity.NOTE, smd.modes.TRAIN)


def test_an_evaluation_beside_the_threshold(written):
    run = evaluated(written, [[2] * 2] * 2)
    assert len(run.findings(ConstantLabels(evaluated=19))) == 1
    assert run.findings(ConstantLabels(evaluated=20)) == []


def test_an_evaluation_that_is_the_last_may_go_on(written):
    run = written(usage="^usage/")
    for _ in range(5):
        run.step(**facts(0, 2))
    for _ in range(5):
        run.step(smd.modes.EVAL, **facts(2))
    assert run.ended().findings(ConstantLabels()) == []


ROWS = np.random.default_rng(0).normal(size=(60, 3))
BINARY = {"objective": "binary:logistic"}
BOOSTED = {
    "of two classes": (BINARY, np.zeros(60)),
    "of several classes": ({"objective": "multi:softmax", "num_class": 3}, np.ones(60)),
    "numbers": ({"objective": "reg:squarederror", "base_score": 0.5}, np.full(60, 7.5)),
}


@pytest.mark.parametrize("kind", BOOSTED)
def test_all_labels_of_a_boosted_training(known_of_training, kind):
    how, labels = BOOSTED[kind]
    (found,) = known_of_training(how, ROWS, labels).findings(ConstantLabels())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "data_facts/labels/train/label_min")
    assert found.evidence == {"labels": 60, "different_labels": 1}
    assert "nothing to learn" in found.cause


def test_boosted_trainings_of_which_nothing_is_said(known_of_training):
    labels = np.zeros(60)
    labels[7] = 1
    assert known_of_training(BINARY, ROWS, labels).findings(ConstantLabels()) == []
    # As few as the batch of another training may have.
    assert known_of_training(BINARY, ROWS[:8], labels[:7].repeat(2)[:8]).findings(ConstantLabels()) == []
    # Times that are censored are not told by the label.
    aft = {"objective": "survival:cox"}
    assert known_of_training(aft, ROWS, np.ones(60)).verdict(ConstantLabels()).not_for_it == ["ConstantLabels"]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(ConstantLabels()).findings)} == {}
