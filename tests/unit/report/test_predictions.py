"""Predictions beside labels: confusion of classes, residuals of a regression."""

from __future__ import annotations

import numpy as np
import pytest
from harness.pages import page_of
from harness.written_runs import started

from smd_agent.analysis.trial import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.report.collecting import collect


@pytest.fixture
def outcome(tmp_path):
    def write(labels, predictions):
        run, manager = started(tmp_path / "run"), CollectionManager()
        for name in ("labels", "predictions"):
            manager.get(name).include(f"^{name}$")
        run.write_collections(manager.to_json())
        file = run.begin_step(0, ModeKeys.GLOBAL, 0)
        file.add("labels", np.array(labels))
        file.add("predictions", np.array(predictions))
        run.commit(file)
        run.close(True)
        return collect(create_trial(tmp_path / "run", timeout=0), []).outcome

    return write


def test_classes(outcome, tmp_path):
    found = outcome([0, 0, 1, 2, 2], [[0.9, 0.1, 0], [0.1, 0.9, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert found.counts.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 2]]
    assert "4 of 5 right (80.0%)" in page_of(tmp_path / "run")


def test_residuals(outcome):
    found = outcome([0.5, 1.5, 2.5], [1.0, 2.0, 2.0])
    assert found.counts is None
    assert found.residuals.tolist() == [0.5, 0.5, -0.5]
    assert sum(count for _, _, count in found.bins) == 3


def test_predictions_that_do_not_fit(outcome):
    assert outcome([0.5, 1.5, 2.5], [1.0, 2.0]) is None
