"""What holds for each rule: silence on clean trainings, its words, and what it says where it cannot judge."""

from __future__ import annotations

import json
import re

import pytest
from harness.written_runs import save, started

from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.pytorch.collection import BUILT_IN
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging
from smd_agent.rules.registry import built_in_rules
from smd_agent.xgboost.collection import BUILT_IN as BUILT_IN_OF_TREES

RULES = built_in_rules()
BY_DEFAULT = {name: rule for name, rule in RULES.items() if not rule.only_by_name}
# Rules that can judge each of the clean trainings. Others are for what few of those have: trees, labels, losses of
# classes, an evaluation, a loss scaler, several workers, tokens, layers of sequences or float inputs.
FOR_ALL = {
    *("AllZero", "DeadRelu", "EqualUnits", "ExplodingTensor", "GradientDiscarded", "GradientNotCleared"),
    *("LearningRateVanished", "LearningRateZero", "LossExploding", "LossNotDecreasing", "LossNotFinite"),
    *("NoGradient", "NotMoving", "NothingLoaded", "OptimizerNotOfModel", "ParameterNotOptimized", "RepeatedBatch"),
    *("SaturatedActivation", "TrainingInEvaluationMode", "UnchangedTensor", "VanishingGradient"),
    "WeightUpdateRatio",
}


def test_clean_trainings_have_neither_problems_nor_warnings(clean):
    found = {}
    for name, run in clean.items():
        verdict = run.verdict(*(rule() for rule in BY_DEFAULT.values()))
        assert verdict.problems == []
        found[name] = [one for one in verdict.findings if one.severity is not Severity.NOTE]
    assert {name: findings for name, findings in found.items() if findings} == {}


def test_clean_trainings_can_be_judged(clean):
    for name, run in clean.items():
        verdict = run.verdict(*(rule() for rule in BY_DEFAULT.values()))
        assert verdict.not_judged == [], name
        assert {*verdict.judged} >= FOR_ALL, name
        assert verdict.steps >= 30, name


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_is(name):
    rule = RULES[name]
    file = re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", name).lower()
    assert rule.__module__ == f"smd_agent.rules.builtin.{file}"
    assert rule.meaning
    assert rule.needs or rule().needs or name == "StalledTrainingRule", "that one is content with anything"
    assert rule.evidence
    for sentence in (rule.cause, rule.advice):
        assert not sentence.endswith(".")
    for parameter in rule.parameters:
        assert hasattr(rule(), parameter.name)


@pytest.mark.parametrize("name", RULES)
def test_parameters_are_checked(name):
    with pytest.raises(TypeError, match="has no parameter thresh0ld"):
        RULES[name](thresh0ld=1)
    copy = RULES[name]().fresh()
    assert all(getattr(copy, one.name) == getattr(RULES[name](), one.name) for one in RULES[name].parameters)


@pytest.mark.parametrize("name", [name for name in RULES if RULES[name]().needs])
def test_of_a_run_without_what_it_needs_it_says_so(name, tmp_path):
    run = started(tmp_path / "run")
    run.write_collections(CollectionManager(create_default=True, built_in={**BUILT_IN_OF_TREES, **BUILT_IN}).to_json())
    save(run, *range(20))
    run.close(True)
    trial = create_trial(str(tmp_path / "run"))
    judging = Judging(trial, [RULES[name]()])
    judging.take_new()
    (unjudged,) = judging.verdict().not_judged
    assert unjudged.rule == name
    assert "was saved" in unjudged.reason
    assert "--save" in unjudged.option


@pytest.mark.parametrize("name", RULES)
def test_steps_that_come_one_by_one_are_judged_as_all_at_once(name, clean):
    run = clean["overflow_of_a_scaled_loss"]
    at_once = run.verdict(RULES[name]())
    trial = run.trial()
    rule: BuiltInRule = RULES[name](trial, **{one.name: one.default for one in RULES[name].parameters})
    for step in trial.steps():
        rule.invoke_at_step(step)
    parts = [*rule._parts.values()]
    for part in parts:
        part.end()
    assert [one.to_json() for part in parts for one in part.findings] == [one.to_json() for one in at_once.findings]
    json.dumps(at_once.to_json())
