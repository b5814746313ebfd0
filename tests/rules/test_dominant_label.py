"""DominantLabel, on padding that a loss counts and on rare classes."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import DominantLabel
from smd_agent.rules.finding import Severity

CLASSES, LENGTH, ROWS = 5, 10, 20


def training_of(labels, count=10, flat=False, ignored=-100):
    """Train with labels of shape (rows, length), or (rows,), which a function makes of a step."""

    def training(capture):
        model = nn.Linear(6, CLASSES)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(count):
            y = labels(step)
            out = model(torch.randn(*y.shape, 6))
            if flat:
                out, y = out.view(-1, CLASSES), y.view(-1)
            elif y.dim() > 1:
                out = out.movedim(-1, 1)
            optimizer.zero_grad()
            functional.cross_entropy(out, y, ignore_index=ignored).backward()
            optimizer.step()

    return training


def padded(step, padding=7, pad=0):
    """Rows that end with so much padding, one of them with one more."""
    y = torch.randint(1, CLASSES - 1, (ROWS, LENGTH))
    y[:, LENGTH - padding :] = pad
    y[0, LENGTH - padding - 1] = pad
    return y


@pytest.mark.parametrize("flat", [False, True])
def test_padding_that_is_not_ignored(trained, flat):
    (found,) = trained(training_of(padded, flat=flat)).findings(DominantLabel())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.last_step, found.steps) == (0, 9, 10)
    share = (7 * ROWS + 1) / (LENGTH * ROWS)
    assert found.evidence == {"top_share": pytest.approx(share), "top_label": 0, "top_at_end": 1, "classes": CLASSES}
    assert "padding" in found.cause


def test_padding_that_is_ignored(trained):
    assert trained(training_of(padded, ignored=0)).findings(DominantLabel()) == []
    assert trained(training_of(lambda step: padded(step, pad=-100))).findings(DominantLabel()) == []


@pytest.mark.parametrize("padding, findings", [(4, 0), (5, 1)])
def test_half_of_the_labels_is_the_threshold(trained, padding, findings):
    assert len(trained(training_of(lambda step: padded(step, padding))).findings(DominantLabel())) == findings


def test_the_same_label_elsewhere_in_a_row_is_no_padding(trained):
    def background(step):
        return padded(step).roll(3, 1)

    assert trained(training_of(background)).findings(DominantLabel()) == []
    assert trained(training_of(background, flat=True)).findings(DominantLabel()) == []
    # In images neither.
    images = training_of(lambda step: padded(step).reshape(ROWS // 2, 2, LENGTH))
    assert trained(images).findings(DominantLabel()) == []


def rare(times):
    """Labels of 100 rows, of which so many are another one than 3."""

    def labels(step):
        y = torch.full((100,), 3)
        y[:times] = step % 3
        return y

    return labels


@pytest.mark.parametrize("times, findings", [(5, 0), (4, 1), (0, 0)])
def test_a_rare_class_is_a_note(trained, times, findings):
    found = trained(training_of(rare(times))).findings(DominantLabel())
    assert [one.severity for one in found] == [Severity.NOTE] * findings
    for one in found:
        assert one.evidence == {"top_share": pytest.approx(0.96), "top_label": 3, "classes": CLASSES}


def test_batches_of_one_label_each_are_not_all_the_same(trained):
    assert trained(training_of(lambda step: torch.full((100,), step % 4))).findings(DominantLabel()) == []


def test_one_step_and_one_label_less_than_it_takes(trained):
    assert trained(training_of(padded, count=9)).verdict(DominantLabel()).findings == []
    few = training_of(lambda step: rare(4)(step)[: 100 - (step == 9)])
    assert trained(few).findings(DominantLabel()) == []
    assert len(trained(few).findings(DominantLabel(labels=999))) == 1


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(DominantLabel()).findings)} == {}
