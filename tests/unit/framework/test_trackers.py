"""W&B and MLflow as they are told of findings: modules of their interface, which a script may have imported."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

from smd_agent import guard
from smd_agent.framework.trackers import Trackers

FINDING = {
    "rule": "LossNotFinite",
    "severity": "problem",
    "mode": "TRAIN",
    "words": "loss not finite at step 30 (finite at 29)",
    "run": "/runs/7",
}
TAG = ("run 1", "smd_agent.LossNotFinite", "problem: loss not finite at step 30 (finite at 29)")


@pytest.fixture
def told(monkeypatch):
    """What each library was told, in order; before, neither is imported."""
    for name in ("wandb", "mlflow", "mlflow.tracking.fluent"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    guard.lines.said.clear()
    return []


def wandb(told, fails=False):
    def alert(title, text, level=None, wait_duration=None):
        told.append((title, text, level))
        if fails:
            raise OSError(f"https://me:{'secret' * 99}@host\ndoes not answer")

    return SimpleNamespace(run=SimpleNamespace(alert=alert))


def mlflow(told, active):
    client = SimpleNamespace(set_tag=lambda run_id, key, value: told.append((run_id, key, value)))
    return SimpleNamespace(active_run=lambda: active, MlflowClient=lambda: client)


def a_run(run_id="run 1"):
    return SimpleNamespace(info=SimpleNamespace(run_id=run_id))


def awaited(told, count):
    limit = time.monotonic() + 20
    while len(told) < count and time.monotonic() < limit:
        time.sleep(0.01)
    return told


def test_a_finding_is_an_alert_of_its_severity(told, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", wandb(told))
    trackers = Trackers()
    trackers.tell(FINDING)
    trackers.tell({**FINDING, "rule": "A" * 90, "severity": "warning", "mode": "EVAL"})
    first, second = awaited(told, 2)
    text = "loss not finite at step 30 (finite at 29); more: python -m smd_agent check /runs/7"
    assert first == ("problem: LossNotFinite (TRAIN)", text, "ERROR")
    assert second == (f"warning: {'A' * 54}", text, "WARN")


def test_a_finding_is_a_tag_of_the_run_that_is_active_in_whichever_thread(told, monkeypatch):
    # The public function knows the runs of its own thread alone, which has none.
    monkeypatch.setitem(sys.modules, "mlflow", mlflow(told, None))
    fluent = SimpleNamespace(_get_latest_active_run=a_run)
    monkeypatch.setitem(sys.modules, "mlflow.tracking.fluent", fluent)
    Trackers().tell(FINDING)
    assert awaited(told, 1) == [TAG]


def test_a_finding_is_a_tag_where_the_public_function_knows_all_threads(told, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", mlflow(told, a_run()))
    Trackers().tell(FINDING)
    assert awaited(told, 1) == [TAG]


def test_one_that_fails_costs_a_line_and_the_other_is_told(told, monkeypatch, capsys):
    alerts = []
    monkeypatch.setitem(sys.modules, "wandb", wandb(alerts, fails=True))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow(told, a_run()))
    trackers = Trackers()
    for _ in range(2):
        trackers.tell(FINDING)
    assert awaited(told, 2) == [TAG, TAG]
    assert len(alerts) == 2
    assert capsys.readouterr().err.splitlines() == [
        "smd_agent: wandb is not told what rules find while training (OSError: https://***@host\\ndoes not answer)"
    ]


def test_nobody_is_told_where_no_run_is_open(told, monkeypatch, capsys):
    idle = wandb(told)
    idle.run = None
    monkeypatch.setitem(sys.modules, "wandb", idle)
    asked = []
    without = mlflow(told, None)
    without.active_run = lambda: asked.append(True)
    monkeypatch.setitem(sys.modules, "mlflow", without)
    trackers = Trackers()
    for _ in range(2):
        trackers.tell(FINDING)
    # The first one is done with when the second one is told.
    assert len(awaited(asked, 2)) == 2
    assert told == []
    assert capsys.readouterr().err == ""


def test_no_library_is_imported_and_no_thread_begun(told):
    trackers = Trackers()
    trackers.tell(FINDING)
    assert not {"wandb", "mlflow"} & sys.modules.keys()
    assert not trackers._has_thread
