"""The order of findings, which is one for `check`, the page and the line at the end."""

from __future__ import annotations

import numpy as np
from harness.pages import opened, page_of
from harness.rule_runs import written

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import finding
from smd_agent.rules.finding import Finding, Severity
from smd_agent.rules.registry import built_in_rules, judge
from smd_agent.rules.verdict_in_time import ShortLook


def found(rule, severity=Severity.PROBLEM, step=0):
    return Finding(rule, severity, None, ModeKeys.TRAIN, "worker_0", step, step, global_step=step)


def in_order(*findings):
    return [(one.rule, one.global_step) for one in sorted(findings, key=lambda one: one.order)]


def test_what_explains_the_others_stands_first():
    names = ["AllZero", "DeadRelu", "GradientNotCleared", "LossNotFinite", "RuleOfAUser"]
    assert [name for name, _ in in_order(*map(found, names))] == [
        "GradientNotCleared", "RuleOfAUser", "LossNotFinite", "DeadRelu", "AllZero",
    ]  # fmt: skip


def test_severity_and_step_come_before_that():
    worst = found("LossNotFinite", step=9), found("ExplodingTensor", step=3)
    findings = found("UnusualInputs", Severity.WARNING), *worst
    assert in_order(*findings) == [("ExplodingTensor", 3), ("LossNotFinite", 9), ("UnusualInputs", 0)]


def test_the_rules_that_follow_are_rules():
    assert finding._FOLLOWING.keys() <= built_in_rules().keys()


def test_one_order_for_all(tmp_path):
    values = [3.0, 2.0, np.nan, np.nan, np.nan]
    run = tmp_path / "run"
    written(run, [{"loss": np.float32(value), "Net_a.weight": np.full(3, value)} for value in values])
    verdict = judge(opened(run))
    rules = [*dict.fromkeys(one.rule for one in verdict.findings)]
    assert rules[:2] == ["LossNotFinite", "ExplodingTensor"]
    short = ShortLook(verdict, 5, 5)
    assert [group[0].rule for group in short.groups] == rules
    page = page_of(run)
    places = [page.index(f"<h3>{rule}</h3>") for rule in rules]
    assert places == sorted(places)
