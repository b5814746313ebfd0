"""Rules of a hook file: what they look at is saved, and `check` applies them as they are configured."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import create_trial, guard, session
from smd_agent.cli import main
from smd_agent.cli.errors import CommandError
from smd_agent.cli.run import overlay
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.config.rules import brought_by, rule_names, rule_of
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.rules.registry import built_in_rules, judge

RULES = built_in_rules()
# Rules that can judge the training here. Others are for what it has not: labels, predictions, trees, targets of other
# shapes or of numbers, tokens, layers of sequences, normalisation, dropout, workers or a scaler.
FOR_IT = {
    *("ActivationMissing", "AllZero", "CheckInputImages", "ConstantLabels", "DeadRelu", "DominantLabel"),
    *("DoubleActivation", "EqualUnits", "EvaluationInTrainingMode", "ExplodingTensor", "GradientDiscarded"),
    *("GradientNotCleared", "LabelOutOfRange", "LearningRateVanished", "LearningRateZero", "LossExploding"),
    *("LossNotDecreasing", "LossNotFinite", "NLPSequenceRatio", "NoGradient", "NotMoving", "NothingLoaded"),
    *("OptimizerNotOfModel", "Overfit", "Overtraining", "ParameterNotOptimized", "PoorWeightInitialization"),
    *("RepeatedBatch", "SaturatedActivation", "SoftmaxOverOne", "StalledTrainingRule", "TensorVariance"),
    *("TrainingInEvaluationMode", "UnchangedTensor", "UnusualInputs", "VanishingGradient", "WeightUpdateRatio"),
}
# They want another run, and more rows.
OF_OTHERS = {"SimilarAcrossRuns", "ClassImbalance"}
# By their documented defaults they look at names that Gluon gives.
PATTERNS = {
    "CheckInputImages": {"regex": "Net_input_0", "threshold_samples": "8"},
    "NLPSequenceRatio": {"tensor_regex": "Net_input_0"},
    "Overtraining": {"patience_train": "1", "patience_validation": "1"},
    "SaturatedActivation": {"tensor_regex": "tanh_input"},
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu = nn.ReLU()
        self.tanh = nn.Tanh()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.tanh(self.relu(self.conv(x)).mean((2, 3))))


def hook_text(folder, *rules, **content):
    listed = [{"RuleConfigurationName": "r", "RuleParameters": {"rule_to_invoke": n, **told}} for n, told in rules]
    return json.dumps({"LocalPath": str(folder), "RuleConfigurations": listed, **content})


def train(folder, *rules, steps=12, rate=0.01, **content):
    """Train as a hook file with these rules says, with an evaluation at every third step."""
    torch.manual_seed(0)
    guard.lines.said.clear()
    # Rules that look on would speak amid other tests.
    content["HookParameters"] = {"live_rules": "", **content.get("HookParameters", {})}
    hook = smd.Hook.from_settings(load_settings(Source("hook.json", text=hook_text(folder, *rules, **content))))
    model = Net()
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    try:
        for step in range(steps):
            hook.set_mode(smd.modes.TRAIN)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.randn(8, 3, 6, 6)), torch.randint(2, (8,))).backward()
            optimizer.step()
            if step % 3 == 2:
                hook.set_mode(smd.modes.EVAL)
                with torch.no_grad():
                    nn.functional.cross_entropy(model(torch.randn(8, 3, 6, 6)), torch.randint(2, (8,)))
        hook.close()
    finally:
        hook.disable()
        session.forget()
    return folder


@pytest.fixture
def check(capsys):
    def run(*words):
        guard.lines.said.clear()
        capsys.readouterr()
        code = main(["check", *map(str, words)])
        out, err = capsys.readouterr()
        return code, json.loads(out) if "--json" in words else out, err

    return run


@pytest.mark.parametrize("name", RULES)
def test_what_is_read_of_a_rule_is_what_its_class_has(name):
    read, rule = rule_of(name), RULES[name]
    assert read.parameters == tuple(one.name for one in rule.parameters)
    assert {*read.chosen_by} == {*rule.chosen_by} <= {*read.parameters}
    for found, written in (read.brings, rule.brings), (read.brings_always, rule.brings_always):
        assert [one.name for one in found] == [one for names in written for one in names.split(",")]
    assert brought_by(name, {}) == [*read.brings, *read.brings_always]


def test_rules_are_known_by_their_names():
    assert rule_names() == [*RULES]
    for name in ("", "vanishing_gradient", "BuiltInRule", "../all_zero", "x" * 5000):
        assert rule_of(name) is None


@pytest.mark.parametrize("name", [name for name in RULES if name not in OF_OTHERS])
def test_what_a_rule_brings_along_is_enough_to_judge_by(name, tmp_path, check):
    every_step = {"HookParameters": {"save_interval": 1}}
    # Documented intervals are too large for so short a training.
    brought = load_settings(Source("h", text=hook_text(tmp_path, (name, PATTERNS.get(name, {}))))).collections
    listed = [
        {"CollectionName": one.name, "CollectionParameters": {"save_interval": 1}}
        for one in brought
        if not one.include_regex
    ]
    rules = [(name, PATTERNS.get(name, {}))]
    run = train(tmp_path / "run", *rules, **every_step)
    code, told, err = check(run, "--json")
    if name in ("VanishingGradient", "WeightUpdateRatio"):
        run = train(tmp_path / "every", *rules, **every_step, CollectionConfigurations=listed)
        code, told, err = check(run, "--json")
    judged = [name] if name in FOR_IT or told["not_for_it"] != [name] else []
    assert (told["judged"], told["not_judged"], err) == (judged, [], ""), code


def test_a_run_without_the_rule_lacks_it(tmp_path, check):
    run = train(tmp_path / "run", HookParameters={"save_interval": 1})
    assert {one["rule"] for one in check(run, "--json", "--rules", "VanishingGradient")[1]["not_judged"]} == {
        "VanishingGradient"
    }


def test_check_applies_what_the_run_was_saved_with(tmp_path, check):
    all_of_them = ("VanishingGradient", {"threshold": "1e9"})
    run = train(tmp_path / "run", all_of_them, HookParameters={"save_interval": 1})
    told = check(run, "--json")[1]
    assert told["judged"] == ["VanishingGradient"]
    assert {one["tensor"] for one in told["findings"]} == {
        f"gradient/Net_{part}.{kind}" for part in ("conv", "out") for kind in ("weight", "bias")
    }
    code, out, _ = check(run)
    assert (code, out.splitlines()[0].split()[0]) == (0, "Rules")
    # Those that are named are asked as they are configured; others as ever.
    told = check(run, "--json", "--rules", "VanishingGradient,LossNotFinite")[1]
    assert {*told["judged"]} == {"VanishingGradient", "LossNotFinite"}
    assert len(told["findings"]) == 4
    assert "LossNotFinite" in check(run, "--json", "--rules", "all")[1]["judged"]


@pytest.mark.parametrize("given, finds", [({}, False), ({"threshold": "0.5"}, True)])
def test_thresholds_are_those_that_are_documented_unless_they_are_given(given, finds, tmp_path, check):
    run = train(tmp_path / "run", ("VanishingGradient", given), HookParameters={"save_interval": 1})
    assert bool(check(run, "--json")[1]["findings"]) == finds


def test_one_overflow_is_enough_as_it_is_documented(tmp_path, check):
    # By default a gradient has to be so three times in a row.
    run = train(tmp_path / "run", ("ExplodingTensor", {}), steps=2, rate=math.inf, HookParameters={"save_interval": 1})
    assert {one["severity"] for one in check(run, "--json")[1]["findings"]} == {"problem"}


def test_a_hook_file_of_the_command_counts_more(tmp_path, check):
    run = train(tmp_path / "run", ("VanishingGradient", {}), HookParameters={"save_interval": 1})
    file = tmp_path / "hook.json"
    file.write_text(hook_text("x", ("VanishingGradient", {"threshold": "1e9"})))
    assert len(check(run, "--json", "--config", file)[1]["findings"]) == 4
    file.write_text("{}")
    assert check(run, "--config", file)[::2] == (2, f"smd_agent: {file} has no RuleConfigurations\n")
    assert check(run, "--config", tmp_path / "none")[0] == 2


def test_what_cannot_be_made_is_told_and_the_rest_is_judged(tmp_path, check):
    rules = [
        ("VanishingGradient", {}),
        ("VanishingGradent", {}),
        ("AllZero", {"threshold": "much"}),
        ("LossNotFinite", {"treshold": 1}),
        ("UnchangedTensor", {"tensor_regex": "("}),
        ("SimilarAcrossRuns", {"other_trial": str(tmp_path / "none")}),
    ]
    run = train(tmp_path / "run", *rules, HookParameters={"save_interval": 1})
    code, told, _ = check(run, "--json")
    assert (code, told["judged"]) == (2, ["VanishingGradient"])
    reasons = {one["rule"]: one["reason"] for one in told["not_judged"]}
    assert reasons.pop("UnchangedTensor").startswith("'(' ")
    assert reasons.pop("SimilarAcrossRuns").startswith("there is no run at ")
    assert reasons == {
        "VanishingGradent": "there is no rule of this name",
        "AllZero": "threshold is 'much', allowed is a number",
        "LossNotFinite": "LossNotFinite has no parameter treshold: it has none",
    }


@pytest.mark.parametrize("meta", [3, {"a": 1}, [1], [{"name": 1, "parameters": {}}], [{"name": "AllZero"}]])
def test_rules_of_a_file_that_somebody_else_wrote(meta):
    text = json.dumps({"collections": {}, "_meta": {"num_workers": 1, "rules": meta}})
    assert CollectionManager.load_from_string(text).rules == []


def test_a_run_without_rules_has_none(tmp_path):
    run = train(tmp_path / "run", HookParameters={"save_interval": 1})
    assert create_trial(str(run)).collection_manager.rules == []
    assert "rules" not in json.loads(next((run / "collections").glob("*/*.json")).read_text())["_meta"]


def lost(tmp_path, **content):
    """A training whose rate is so high that the first update loses everything."""
    content.setdefault("HookParameters", {"save_interval": 1})
    return train(tmp_path / "run", steps=3, rate=math.inf, **content)


def test_rules_that_the_run_ignores_find_nothing_unless_they_are_named(tmp_path, check):
    run = lost(tmp_path, IgnoredRules=["LossNotFinite", "NotMoving"])
    told = check(run, "--json")[1]
    assert not {"LossNotFinite", "NotMoving"} & {*told["judged"], *(one["rule"] for one in told["not_judged"])}
    assert check(run)[1].splitlines()[0] == "Ignored  LossNotFinite, NotMoving"
    assert [one["rule"] for one in check(run, "--json", "--rules", "LossNotFinite")[1]["findings"]] != []
    assert "LossNotFinite" not in {one.rule for one in judge(create_trial(str(run))).findings}


def test_rules_that_the_command_ignores(tmp_path, check):
    run = lost(tmp_path)
    assert "LossNotFinite" in check(run, "--json")[1]["judged"]
    assert "LossNotFinite" not in check(run, "--json", "--ignore", "LossNotFinite")[1]["judged"]
    told = check(run, "--json", "--rules", "LossNotFinite,NotMoving", "--ignore", "LossNotFinite")[1]
    assert {*told["judged"], *(one["rule"] for one in told["not_judged"])} == {"NotMoving"}
    assert check(run, "--ignore", "LossNotFinit")[0] == 2


def test_a_configured_rule_that_is_ignored(tmp_path, check):
    run = train(
        tmp_path / "run",
        ("VanishingGradient", {"threshold": "1e9"}),
        HookParameters={"save_interval": 1},
        IgnoredRules="VanishingGradient",
    )
    assert check(run, "--json")[1]["findings"] == []


def test_names_of_ignored_rules_that_there_are_not():
    found = load_settings(Source("hook.json", text=json.dumps({"IgnoredRules": "LossNotFinit, AllZero"})))
    assert found.ignored_rules == ("AllZero",)
    (line,) = found.warnings
    assert line.startswith("hook.json: IgnoredRules names LossNotFinit, allowed are AccumulationWeights, ")
    with pytest.raises(CommandError, match=r"option --ignore names LossNotFinit, allowed are .*LossNotFinite"):
        overlay({}, {"--ignore": "LossNotFinit"})
    assert overlay({}, {"--ignore": "AllZero, Confusion"})["IgnoredRules"] == ["AllZero", "Confusion"]
