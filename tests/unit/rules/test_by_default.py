"""The rules that need not be named, and findings put together that differ only in their tensors and steps."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.rules.finding import Finding, Severity, alike
from smd_agent.rules.registry import applied_unasked, built_in_rules


def finding(rule, tensor, step, cause=""):
    return Finding(rule, Severity.PROBLEM, tensor, ModeKeys.TRAIN, "worker_0", step, step, cause=cause)


def test_groups_come_in_the_order_of_their_first_findings():
    one, two, three = finding("A", "x", 3), finding("B", "x", 1), finding("A", "y", 5)
    other = finding("A", "z", 5, "another one")
    assert alike([one, two, three, other]) == [[one, three], [two], [other]]
    assert alike([]) == []


def test_rules_that_must_be_named_are_left_out():
    every, found = built_in_rules(), applied_unasked(built_in_rules())
    assert {*every} - {*found} == {name for name, rule in every.items() if rule.only_by_name}
    assert {"LossNotFinite", "ExplodingTensor"} <= {*found}
    assert {"Confusion", "SimilarAcrossRuns"} & {*found} == set()
