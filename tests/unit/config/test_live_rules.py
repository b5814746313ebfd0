"""The rules of a hook file that look on while training goes on, and what follows when they find something."""

from __future__ import annotations

import json
import os

import pytest
from harness.hook_files import refusal

from smd_agent.config.hook_file import Source
from smd_agent.config.live import ALL
from smd_agent.config.load import load_settings
from smd_agent.config.settings import LiveRule

ACTION = {"command": ["notify", "me"]}


def settings(*rules, **hook):
    listed = [
        {"RuleConfigurationName": "one", "RuleParameters": {"rule_to_invoke": name}, **told} for name, told in rules
    ]
    return load_settings(Source("hook.json", text=json.dumps({"HookParameters": hook, "RuleConfigurations": listed})))


def test_without_rules_there_is_none():
    assert settings().live_rules == ()


def test_the_rules_of_the_file_look_on_as_they_are_configured():
    found = settings(("AllZero", {}), ("Overfit", {"OnFind": "stop", "Actions": [ACTION]}), actions=[{"shell": "true"}])
    assert found.live_rules == (
        LiveRule("AllZero", {}, "warn", ({"shell": "true"},)),
        LiveRule("Overfit", {}, "stop", ({"shell": "true"}, ACTION)),
    )
    assert found.warnings == ()


def test_others_can_be_named_in_their_place():
    found = settings(("AllZero", {}), live_rules="LossNotFinite, all,own.py,AllZero", on_find="dump")
    assert found.live_rules == (
        LiveRule("LossNotFinite", None, "dump"),
        LiveRule(ALL, None, "dump"),
        LiveRule(os.path.abspath("own.py"), None, "dump"),
        LiveRule("AllZero", {}, "dump"),
    )
    # These are kept with the run.
    assert [rule.name for rule in found.rules] == ["AllZero"]


@pytest.mark.parametrize("nothing", ["", []])
def test_an_empty_list_names_none(nothing):
    found = settings(("AllZero", {}), live_rules=nothing)
    assert (found.live_rules, found.warnings) == ((), ())


def test_a_name_that_is_none_is_said():
    found = settings(live_rules=["LossNotFinit", "AllZero"])
    assert [rule.name for rule in found.live_rules] == ["AllZero"]
    (warning,) = found.warnings
    assert warning.startswith("hook.json: HookParameters.live_rules names LossNotFinit, allowed are ")


def test_what_would_do_nothing_is_said():
    (warning,) = settings(on_find="stop").warnings
    assert warning == "hook.json: HookParameters.on_find and actions do nothing: no rule is asked while training"


@pytest.mark.parametrize(
    "value",
    [
        {"command": ["ls"]},
        ["ls"],
        [{"command": "ls -l"}],
        [{"command": []}],
        [{"command": ["ls", 1]}],
        [{"command": ["ls"], "file": "x"}],
        [{"webhook": "file:///etc/passwd"}],
        [{"mail": "me"}],
        [{"file": " "}],
        [{}],
    ],
)
def test_what_is_no_action_is_refused(value):
    assert "HookParameters.actions is" in refusal({"HookParameters": {"actions": value}})


def test_the_path_of_a_file_is_absolute():
    (rule,) = settings(live_rules="AllZero", actions=[{"file": "found.jsonl"}]).live_rules
    assert rule.actions == ({"file": os.path.abspath("found.jsonl")},)
