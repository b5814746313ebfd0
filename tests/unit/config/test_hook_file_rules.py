"""The rules of a hook file: which they are, and the collections that they bring along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from harness.hook_files import refusal

from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig


def settings(*rules, **content):
    """What a file with rules comes to; a rule is its name, or a pair of name and parameters."""
    pairs = [(rule, {}) if isinstance(rule, str) else rule for rule in rules]
    listed = [
        {"RuleConfigurationName": name, "RuleParameters": {"rule_to_invoke": name, **told}} for name, told in pairs
    ]
    return load_settings(Source("hook.json", text=json.dumps({**content, "RuleConfigurations": listed})))


def collections(found):
    return {one.name: one for one in found.collections}


def interval(collection, mode=ModeKeys.TRAIN):
    return collection.save_config.get_save_config(mode).save_interval


def tokens(collection):
    form = collection.reduction_config
    return form and ({*form.to_tokens()}, form.save_raw_tensor)


def test_a_rule_brings_its_collection_with_the_interval_that_is_documented():
    found = settings("VanishingGradient", HookParameters={"save_interval": 20})
    gradients = collections(found)["gradients"]
    assert (interval(gradients), tokens(gradients)) == (500, ({"abs_mean", "zero_share"}, False))
    assert "gradients" in found.include_collections
    assert found.warnings == ()


def test_a_rule_without_a_documented_collection_brings_what_it_looks_at_with_the_hooks_steps():
    found = collections(settings("ExplodingTensor", HookParameters={"save_interval": 20}))
    assert {*found} == {"weights", "biases", "gradients"}
    assert {interval(one) for one in found.values()} == {20}
    assert tokens(found["weights"]) == ({"abs_mean", "nan_count", "inf_count"}, False)


def test_a_rule_that_compares_values_brings_whole_tensors():
    weights = collections(settings("WeightUpdateRatio"))["weights"]
    assert (interval(weights), tokens(weights)) == (500, (set(), True))


def test_two_rules_with_one_collection_have_what_both_need():
    found = collections(settings("VanishingGradient", "ExplodingTensor", HookParameters={"save_interval": 20}))
    assert tokens(found["gradients"]) == ({"abs_mean", "zero_share", "nan_count", "inf_count"}, False)
    assert interval(found["gradients"]) == 20
    found = collections(settings("WeightUpdateRatio", "TensorVariance"))
    assert tokens(found["weights"]) == (set(), True)


@pytest.mark.parametrize(
    "hook, own, expected",
    [
        # Whole tensors have all statistics.
        ({}, {"save_interval": 7}, None),
        ({"reductions": "mean"}, {"save_interval": 7}, ({"mean", "abs_mean", "zero_share"}, False)),
        ({}, {"save_interval": 7, "reductions": "max"}, ({"max", "abs_mean", "zero_share"}, False)),
        ({}, {"save_interval": 7, "reductions": "abs_mean,zero_share"}, ({"abs_mean", "zero_share"}, False)),
    ],
)
def test_a_listed_collection_keeps_its_steps_and_what_is_saved_of_it(hook, own, expected):
    listed = [{"CollectionName": "gradients", "CollectionParameters": own}]
    found = settings("VanishingGradient", HookParameters=hook, CollectionConfigurations=listed)
    gradients = collections(found)["gradients"]
    assert (interval(gradients), tokens(gradients)) == (7, expected)


@pytest.mark.parametrize(
    "hook, listed",
    [
        ({"include_collections": "gradients"}, []),
        ({"save_all": True}, []),
        ({}, [{"CollectionName": "all"}]),
    ],
)
def test_a_collection_that_is_saved_anyhow_keeps_the_hooks_steps_and_form(hook, listed):
    found = settings("VanishingGradient", HookParameters=hook, CollectionConfigurations=listed)
    gradients = collections(found)["gradients"]
    assert (gradients.save_config, gradients.reduction_config) == (None, None)
    reduced = {**hook, "reductions": "statistics", "save_raw_up_to": 64}
    found = settings("WeightUpdateRatio", HookParameters=reduced, CollectionConfigurations=listed)
    if not hook.get("include_collections"):
        form = collections(found)["weights"].reduction_config
        assert form == ReductionConfig(["statistics"], save_raw_tensor=True, save_raw_up_to=64)


def test_small_tensors_that_the_hook_saves_whole_stay_whole():
    found = settings("VanishingGradient", HookParameters={"reductions": "mean", "save_raw_up_to": 64})
    assert collections(found)["gradients"].reduction_config.save_raw_up_to == 64


def test_losses_are_saved_as_they_are_without_the_rule():
    losses = collections(settings("LossNotDecreasing", HookParameters={"save_interval": 20}))["losses"]
    assert (losses.save_config, losses.reduction_config) == (None, None)


def test_parameters_choose_what_is_saved():
    chosen = {"tensor_regex": "relu,tanh", "collection_names": "losses,weights"}
    found = collections(settings(("AllZero", chosen), HookParameters={"save_interval": 5}))
    assert {*found} == {"AllZero", "losses", "weights"}
    assert found["AllZero"].include_regex == ("relu", "tanh")
    assert tokens(found["weights"]) == ({"zero_share"}, False)
    relu = collections(settings(("DeadRelu", {"tensor_regex": "ReLU_output"})))["relu_output"]
    assert (relu.include_regex, interval(relu), tokens(relu)) == (("ReLU_output",), 500, (set(), True))
    assert collections(settings("DeadRelu"))["relu_output"].include_regex == (".*relu_output",)


def test_a_pattern_that_is_none_costs_that_alone():
    found = settings(("DeadRelu", {"tensor_regex": "("}), "VanishingGradient")
    assert {*collections(found)} == {"gradients"}
    (line,) = found.warnings
    assert line.startswith("hook.json: RuleConfigurations: a pattern of DeadRelu is left out, allowed are regular")


def test_rules_are_kept_with_what_they_are_told():
    found = settings(("VanishingGradient", {"threshold": "0.0000001", "base_trial": "s3://x"}), "CreateXgboostReport")
    assert [(rule.name, rule.parameters) for rule in found.rules] == [("VanishingGradient", {"threshold": "0.0000001"})]
    assert interval(collections(found)["predictions"]) == 5
    (line,) = found.warnings
    assert "rule_to_invoke is CreateXgboostReport: no report is written" in line


def test_unknown_names_cost_nothing_else():
    found = settings("VanishingGradent", ("AllZero", {"treshold": 1}), ("LossNotFinite", {"x": 1}))
    unknown, parameter, none = found.warnings
    start = "hook.json: RuleConfigurations[0].RuleParameters.rule_to_invoke is VanishingGradent, allowed are Acc"
    assert unknown.startswith(start)
    assert "CreateXgboostReport" not in unknown
    assert unknown.endswith("; did you mean VanishingGradient?")
    assert parameter == (
        "hook.json: RuleConfigurations[1].RuleParameters.treshold is no parameter of AllZero, "
        "allowed are collection_names, tensor_regex, threshold, patience"
    )
    assert none == "hook.json: RuleConfigurations[2].RuleParameters.x is no parameter of LossNotFinite, there is none"
    assert [rule.name for rule in found.rules] == ["VanishingGradent", "AllZero", "LossNotFinite"]
    assert "gradients" in collections(found)


def test_the_name_of_the_configuration_stands_in_for_the_rules():
    text = json.dumps({"RuleConfigurations": [{"RuleConfigurationName": "Overfit", "InstanceType": "ml.t3"}, {}]})
    found = load_settings(Source("hook.json", text=text))
    assert [rule.name for rule in found.rules] == ["Overfit"]
    (line,) = found.warnings
    assert line.startswith("hook.json: RuleConfigurations[1].RuleParameters.rule_to_invoke is missing, allowed are Acc")


def test_wrong_structure_is_refused_in_one_sentence():
    entry = {"RuleParameters": "x"}
    sentence = 'hook.json: RuleConfigurations[0].RuleParameters is "x", allowed is a JSON object ({...})'
    assert refusal({"RuleConfigurations": [entry]}) == sentence
    assert refusal({"RuleConfigurations": {}}) == "hook.json: RuleConfigurations is {}, allowed is a list ([...])"


def test_a_file_without_rules_has_none():
    assert load_settings(Source("hook.json", text="{}")).rules == ()


LOADED = """
import json, sys
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
rules = json.loads(sys.argv[1])
found = load_settings(Source("hook.json", text=json.dumps({"RuleConfigurations": rules})))
print(json.dumps([name for name in sys.modules if name.startswith(("smd_agent.rules", "smd_agent.config.rule"))]))
"""


def test_a_program_that_starts_does_not_import_the_rules():
    def imported(*rules):
        listed = json.dumps([{"RuleConfigurationName": rule} for rule in rules])
        done = subprocess.run([sys.executable, "-c", LOADED, listed], capture_output=True, text=True, check=True)
        return {*json.loads(done.stdout)}

    assert imported() == set()
    assert imported("VanishingGradient") == {"smd_agent.config.rules"}
