"""A short look, and its line: what is counted, in which words, and how long it gets."""

from __future__ import annotations

import math
import time

import pytest
from harness.rule_runs import written

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import registry
from smd_agent.rules.finding import Finding, Severity
from smd_agent.rules.judging import Verdict
from smd_agent.rules.registry import applied_unasked, built_in_rules
from smd_agent.rules.verdict_in_time import ShortLook, in_one_line, look_shortly

PROBLEM, WARNING, NOTE = Severity


def finding(rule, severity=PROBLEM, tensor=None, step=3, short="", mode=ModeKeys.TRAIN):
    return Finding(rule, severity, tensor, mode, "worker_0", step, step, global_step=step, short=short)


def line(*findings, looked=30, steps=30, saw_last=False, **more):
    verdict = Verdict(sorted(findings, key=lambda one: one.order), ["LossNotFinite", "AllZero"], steps=looked)
    return in_one_line(ShortLook(verdict, looked, steps, saw_last), **more)


def test_notes_are_no_findings_and_are_told():
    said = line(finding("Overtraining", NOTE))
    assert said == "no findings in 2 rules over 30 steps; 1 note: overtraining at step 3"


def test_notes_are_not_told_beside_findings():
    assert line(finding("Overtraining", NOTE), finding("Overfit", WARNING)) == line(finding("Overfit", WARNING))


def test_alike_ones_count_once_and_problems_stand_first():
    said = line(
        finding("VanishingGradient", WARNING, "gradient/a", 0, "gradient vanishes: {}"),
        *(finding("ParameterNotOptimized", PROBLEM, f"Net_head.{name}", 7, "in no optimizer: {}") for name in "abc"),
    )
    assert said == "2 findings: in no optimizer: Net_head.a and 2 more; gradient vanishes: gradient/a"


def test_a_fact_is_told_by_what_it_is_of():
    facts = [
        finding("UnusualInputs", WARNING, f"usage/input/{name}", 0, "unusual inputs: {}")
        for name in ("a/std", "a/mean")
    ]
    kept = finding("GradientNotCleared", tensor="usage/optimizer/SGD/group_0/kept", short="gradient not cleared: {}")
    assert line(*facts, kept) == "2 findings: gradient not cleared: SGD/group_0; unusual inputs: a"


def test_at_one_step_the_loss_that_is_not_finite_stands_before_what_follows_from_it():
    said = line(finding("ExplodingTensor", short="not finite"), finding("LossNotFinite", short="loss"))
    assert said == "2 findings: loss; not finite"


def test_a_mistake_stands_before_what_follows_from_it_whichever_began_first():
    said = line(
        finding("LossNotDecreasing", WARNING, step=0, short="loss rises"),
        finding("ConstantLabels", WARNING, step=40, short="sorted labels"),
    )
    assert said == "2 findings: sorted labels; loss rises"


def test_what_began_first_stands_first():
    said = line(finding("ExplodingTensor", short="not finite"), finding("LossNotFinite", step=9, short="loss"))
    assert said == "2 findings: not finite; loss"


def test_a_rule_without_words_is_called_by_its_name():
    assert line(finding("DataStall", WARNING, step=4)) == "1 finding: data stall at step 4"
    assert line(finding("DoubleSoftmax", WARNING, "Net_{out}", 4)) == "1 finding: double softmax: Net_{out} at step 4"


def test_it_does_not_get_long():
    many = [finding(f"Rule{letter}", WARNING, "layer" * 30, short="is as it is: {}") for letter in "abcdef"]
    findings = [*many, *(finding(f"Rule{letter}", short=f"a {letter}") for letter in "xyz")]
    assert line(*findings) == "9 findings: a x; a y; a z; and 6 more"
    assert len(line(*many)) < 150
    named = [finding(f"Rule{number}", short=f"{number}: {'x' * 60}") for number in range(4)]
    assert line(*named) == f"4 findings: 0: {'x' * 60}; 1: {'x' * 60}; and 2 more"


@pytest.mark.parametrize(
    "looked, saw_last, said",
    [
        (30, False, "no findings so far in 2 rules over 30 steps"),
        (7, False, "no findings so far in the first 7 of 30 steps"),
        (7, True, "no findings so far in the first 7 and the last of 30 steps"),
        (1, True, "no findings so far in the first and the last of 30 steps"),
        (0, True, "no findings so far in the last of 30 steps"),
    ],
)
def test_it_says_how_far_it_has_looked(looked, saw_last, said):
    assert line(looked=looked, saw_last=saw_last, so_far=True) == said


def test_where_no_rule_could_judge_nothing_is_claimed():
    assert in_one_line(ShortLook(Verdict(), 3, 3)) == "no rule could judge"


@pytest.fixture
def trial(tmp_path):
    return written(tmp_path / "run", [{"loss": 1.0 / (step + 1)} for step in range(12)])


def test_the_rules_are_those_that_check_applies(trial):
    steps = trial.step_table.steps(ModeKeys.GLOBAL, True)
    look = look_shortly(trial, steps, trial.step_table.files, 60)
    verdict = look.verdict
    asked = {*verdict.judged, *verdict.not_for_it, *(one.rule for one in verdict.not_judged)}
    assert asked == applied_unasked(built_in_rules()).keys()
    assert look.is_whole


def test_steps_that_cannot_be_read_take_their_time_too(trial):
    def gone(step):
        time.sleep(0.01)
        return {}

    begun = time.monotonic()
    look = look_shortly(trial, range(10_000), gone, 0.3)
    assert time.monotonic() - begun < 3
    assert 0 < look.looked == look.unreadable < 10_000
    assert not look.is_whole


def test_without_time_only_the_last_loss_is_looked_at(trial):
    steps = trial.step_table.steps(ModeKeys.GLOBAL, True)
    look = look_shortly(trial, steps, trial.step_table.files, -1)
    assert (look.looked, look.saw_last, look.groups) == (0, True, [])
    assert in_one_line(look) == "no findings in the last of 12 steps"


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("seconds", [0, 0.05, 0.3])
@pytest.mark.parametrize("after", [[], [ModeKeys.PREDICT] * 3])
@pytest.mark.parametrize("processes", [1, 4])
def test_a_last_loss_that_is_not_finite_is_never_missed(seconds, after, processes, tmp_path, monkeypatch):
    """However little time there is, and however many share the processor; steps that have no loss may follow."""
    clock = time.monotonic
    monkeypatch.setattr("smd_agent.rules.verdict_in_time.time.monotonic", lambda: processes * clock())
    steps = [{"loss": 1.0} for _ in range(19)] + [{"loss": math.nan}, *({"outputs": 1.0} for _ in after)]
    trial = written(tmp_path / "run", steps, [ModeKeys.TRAIN] * 20 + after)

    def slowly(step):
        busy(0.05)
        return trial.step_table.files(step)

    look = look_shortly(trial, trial.step_table.steps(ModeKeys.GLOBAL, True), slowly, seconds)
    assert not look.is_whole
    assert "loss not finite at step 19" in in_one_line(look)


def test_a_busy_machine_does_not_shorten_the_look(trial):
    """What the clock says while others have the processor is not its time."""

    def delayed(step):
        time.sleep(0.2)
        return trial.step_table.files(step)

    steps = trial.step_table.steps(ModeKeys.GLOBAL, True)
    begun = time.monotonic()
    assert look_shortly(trial, steps, delayed, 2).looked == 12
    assert time.monotonic() - begun > 2


def test_a_disk_that_is_slow_is_waited_for_three_times_as_long_by_the_clock(trial):
    def gone(step):
        time.sleep(0.05)
        return {}

    begun = time.monotonic()
    look = look_shortly(trial, range(10_000), gone, 0.5)
    assert 1 < time.monotonic() - begun < 6
    assert look.looked < 40


def test_of_one_worker_of_several_rules_about_all_are_left_out(trial, monkeypatch):
    asked = registry.built_in_rules()["StalledTrainingRule"]
    monkeypatch.setattr(registry, "applied_unasked", lambda rules: {"StalledTrainingRule": asked})
    steps = trial.step_table.steps(ModeKeys.GLOBAL, True)
    judged = [
        look_shortly(trial, steps, trial.step_table.files, 60, one_worker=one).verdict.judged for one in (False, True)
    ]
    assert judged == [["StalledTrainingRule"], []]
