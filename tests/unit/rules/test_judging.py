"""How steps come to rules: once, in order, of one worker or all, of a run that goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from harness.written_runs import started

from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.rules import LossNotFinite, Rule
from smd_agent.rules.built_in import BuiltInRule, Need, Split
from smd_agent.rules.finding import Finding, Severity
from smd_agent.rules.judging import Judging
from smd_agent.rules.step_view import RunView, StepView


class Negative(BuiltInRule):
    """Finds negative losses."""

    meaning = "a loss is negative"
    needs = (Need(("losses",)),)
    evidence = {"loss": "the loss"}  # noqa: RUF012
    severity = Severity.WARNING
    cause = "made up"

    def start(self):
        self.seen = []

    def take(self, step):
        self.seen.append((step.worker, step.mode.name, step.step))
        for name, loss in step.numbers(step.names("losses")).items():
            if loss < 0:
                self.found(step, name, {"loss": loss})


class Together(Negative):
    """Sees all workers."""

    split = Split.RUN


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def begin(folder, worker="worker_0", workers=1):
    run = started(folder, worker, workers == 1)
    manager = CollectionManager()
    manager.get("losses").include("loss")
    manager.set_num_workers(workers)
    run.write_collections(manager.to_json())
    return run


def save(run, step, loss, mode=ModeKeys.TRAIN, mode_step=None):
    file = run.begin_step(step, mode, step if mode_step is None else mode_step)
    file.add("loss", np.array(loss, np.float32))
    run.commit(file)
    assert run.flush()


def judged(folder, *rules):
    judging = Judging(create_trial(str(folder), timeout=0), rules)
    judging.take_new()
    return judging.verdict()


def test_a_finding_reaches_from_its_first_step_to_its_last(tmp_path):
    run = begin(tmp_path / "run")
    for step, loss in enumerate((1, -2, 3, -4, 5)):
        save(run, 10 * step, loss)
    run.close(True)
    verdict = judged(tmp_path / "run", Negative())
    assert verdict.findings == [
        Finding(
            "Negative",
            Severity.WARNING,
            "loss",
            ModeKeys.TRAIN,
            "worker_0",
            10,
            30,
            {"loss": -2.0},
            "made up",
            "",
            2,
            10,
        )
    ]
    assert (verdict.judged, verdict.steps, verdict.has_problem) == (["Negative"], 5, False)


def test_each_mode_has_findings_and_step_numbers_of_its_own(tmp_path):
    run = begin(tmp_path / "run")
    for step in range(4):
        save(run, step, -step - 1.0, ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN, step // 2)
    run.close(True)
    found = judged(tmp_path / "run", Negative()).findings
    assert [(one.mode.name, one.first_step, one.last_step, one.global_step) for one in found] == [
        ("TRAIN", 0, 1, 0),
        ("EVAL", 0, 1, 1),
    ]


def test_a_running_job_is_judged_as_its_steps_come(tmp_path):
    run = begin(tmp_path / "run")
    save(run, 0, 1.0)
    trial = create_trial(str(tmp_path / "run"))
    judging = Judging(trial, [Negative()])
    judging.take_new()
    assert judging.verdict().findings == []
    for step in (1, 2):
        save(run, step, -1.0)
        judging.take_new()
        judging.take_new()
        (found,) = judging.verdict().findings
        assert (found.first_step, found.last_step, found.steps) == (1, step, step)
    run.close(True)
    judging.take_new()
    assert judging.verdict() == judged(tmp_path / "run", Negative())
    (part,) = judging._parts[0].values()
    assert part.seen == [("worker_0", "TRAIN", step) for step in range(3)]


def test_workers_are_judged_apart_or_together(tmp_path):
    runs = [begin(tmp_path / "run", f"worker_{number}", 2) for number in range(2)]
    for step in range(3):
        for number, run in enumerate(runs):
            if (step, number) != (2, 1):
                save(run, step, -1.0 if number else 1.0)
    for run in runs:
        run.close(True)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    judging = Judging(trial, [Negative(), Together()])
    judging.take_new(incomplete=True)
    apart, together = judging._parts
    assert {worker: part.seen for worker, part in apart.items()} == {
        "worker_0": [("worker_0", "TRAIN", step) for step in range(3)],
        "worker_1": [("worker_1", "TRAIN", step) for step in range(2)],
    }
    assert [len(part.seen) for part in together.values()] == [5]
    found = judging.verdict().findings
    assert [(one.rule, one.worker, one.steps) for one in found] == [("Negative", "worker_1", 2), ("Together", "", 2)]


def test_what_is_worst_comes_first(tmp_path):
    run = begin(tmp_path / "run")
    for step, loss in enumerate((-1, 1, np.nan)):
        save(run, step, loss)
    run.close(True)
    found = judged(tmp_path / "run", Negative(), LossNotFinite()).findings
    assert [one.rule for one in found] == ["LossNotFinite", "Negative"]
    text = json.dumps(judged(tmp_path / "run", LossNotFinite()).to_json(), allow_nan=False)
    assert json.loads(text)["findings"][0]["evidence"]["last_finite_step"] == 1


def test_evidence_that_is_not_finite_is_text():
    found = Finding("R", Severity.NOTE, None, ModeKeys.TRAIN, "", 0, 0, {"a": float("inf"), "b": 1.5, "c": 2})
    assert found.to_json()["evidence"] == {"a": "inf", "b": 1.5, "c": 2}


def test_a_damaged_record_is_told_and_the_rest_judged(tmp_path):
    run = begin(tmp_path / "run")
    for step in range(3):
        save(run, step, -1.0)
    run.close(True)
    file = next((tmp_path / "run").rglob("*1_worker_0.tfevents"))
    whole = bytearray(file.read_bytes())
    whole[-20] ^= 1
    file.write_bytes(whole)
    verdict = judged(tmp_path / "run", Negative())
    (problem,) = verdict.problems
    assert "loss at step 1 is damaged" in problem
    assert verdict.findings[0].steps == 2


def test_rules_of_old_programs_are_invoked_at_each_step(tmp_path):
    class Old(Rule):
        def invoke_at_step(self, step):
            return float(self.base_trial.tensor("loss").value(step)) < 0

    class Blind(Rule):
        def invoke_at_step(self, step):
            return self.base_trial.tensor("nothing").value(step)

    run = begin(tmp_path / "run")
    for step, loss in enumerate((1, -1, 1, -1)):
        save(run, 5 * step, loss)
    run.close(True)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    judging = Judging(trial, [Old(trial), Blind(trial)])
    judging.take_new()
    verdict = judging.verdict()
    (found,) = verdict.findings
    assert (found.rule, found.severity, found.first_step, found.last_step, found.steps) == (
        "Old",
        Severity.PROBLEM,
        5,
        15,
        2,
    )
    assert (verdict.judged, [one.rule for one in verdict.not_judged]) == (["Old"], ["Blind"])


def test_a_rule_that_is_for_other_runs(tmp_path):
    class OfTrees(Negative):
        needs = (Need(("trees",)),)

    class Patient(Negative):
        fewest_steps = 5

    run = begin(tmp_path / "run")
    save(run, 0, 1.0)
    run.close(True)
    verdict = judged(tmp_path / "run", OfTrees(), Patient())
    assert verdict.not_for_it == ["OfTrees"]
    (unjudged,) = verdict.not_judged
    assert unjudged.reason == "it takes 5 steps to judge, and there are 1"
    assert "--every 1" in unjudged.option


def test_statistics_are_stored_ones_or_computed(tmp_path):
    run = begin(tmp_path / "run")
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add("whole", np.array([[1.0, -3.0], [0.0, np.nan]], np.float32))
    file.add_scalars(("smdebug/reductions/abs_mean/told", "smdebug/reductions/l2/told"), np.array([7.0, 8.0]))
    file.add_shape("told", "told", (3, 4))
    file.add_text("text", ["a"])
    run.commit(file)
    run.close(True)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    step = StepView(RunView(trial), trial.step_table.files(0)["worker_0"])
    every = step.names()
    assert every == ("text", "told", "whole")
    assert dict(step.column("abs_mean", every).items())["told"] == 7
    assert dict(step.column("nan_count", every).items()) == {"whole": 1}
    assert dict(step.column("abs_max", ("whole",)).items()).keys() == {"whole"}
    assert dict(step.numbers(every).items()) == {}
    assert step.can_know("l2", ("told",))
    assert not step.can_know("max", ("told",))
    assert (step.size("told"), step.dimensions("told"), step.size("whole")) == (12, 2, 4)
    assert step.value("told") is None


def test_a_worker_that_lags_behind_is_caught_up_with(tmp_path):
    runs = [begin(tmp_path / "run", f"worker_{number}", 2) for number in range(2)]
    save(runs[0], 0, 1.0)
    save(runs[0], 1, 1.0)
    save(runs[1], 0, 1.0)
    trial = create_trial(str(tmp_path / "run"))
    judging = Judging(trial, [Together()])
    judging.take_new(incomplete=True)
    save(runs[1], 1, 1.0)
    judging.take_new(incomplete=True)
    for run in runs:
        run.close(True)
    (part,) = judging._parts[0].values()
    assert sorted(part.seen) == [(f"worker_{worker}", "TRAIN", step) for worker in range(2) for step in range(2)]


def test_a_damaged_statistic_is_told(tmp_path):
    run = begin(tmp_path / "run")
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add_scalars(("smdebug/reductions/l2/a", "smdebug/reductions/l2/b"), np.array([7.0, 8.0]))
    run.commit(file)
    run.close(True)
    event_file = next((tmp_path / "run").rglob("*.tfevents"))
    whole = bytearray(event_file.read_bytes())
    whole[-20] ^= 1
    event_file.write_bytes(whole)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    view = RunView(trial)
    step = StepView(view, trial.step_table.files(0)["worker_0"])
    assert dict(step.column("l2", step.names()).items()) == {"a": 7}
    (problem,) = view.problems
    assert "l2/b at step 0 is damaged" in problem
