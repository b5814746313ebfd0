from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from harness.hook_files import hook, load, one_collection, refusal

from smd_agent.core.save_config import SaveConfig

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("value", [100, "100", " 100 ", 100.0], ids=repr)
def test_number_spellings(value: object) -> None:
    assert hook(save_interval=value).save_config == SaveConfig(save_interval=100)


@pytest.mark.parametrize("value", ["1, 2,3", [1, 2, 3], ["1", 2, 3.0], "1,2,3,"], ids=repr)
def test_step_list_spellings(value: object) -> None:
    assert hook(save_steps=value).save_config == SaveConfig(save_steps=[1, 2, 3])


def test_single_step_and_none() -> None:
    assert hook(save_steps=7).save_config == SaveConfig(save_steps=[7])
    assert hook(save_steps="").save_config == SaveConfig()


@pytest.mark.parametrize("value", [True, 1, "1", "true", "TRUE", "True", " yes ", "on", "T", "y"], ids=repr)
@pytest.mark.parametrize("key", ["save_all", "dry_run", "export_tensorboard"], ids=repr)
def test_true_spellings(key: str, value: object) -> None:
    assert getattr(hook(**{key: value}), key) is True


@pytest.mark.parametrize("value", [False, 0, "0", "false", "FALSE", "no", "Off", "n", "f"], ids=repr)
def test_false_spellings(value: object) -> None:
    assert hook(save_all=value).save_all is False
    assert one_collection({"save_histogram": value}).save_histogram is False


@pytest.mark.parametrize("value, expected", [("all", "all"), ("one", "one"), ("ALL", "all")])
def test_include_workers(value: str, expected: str) -> None:
    assert hook(include_workers=value).include_workers == expected


@pytest.mark.parametrize("value, expected", [("forward", "forward"), ("Update ", "update"), (None, "update")])
def test_what_a_step_ends_with(value: str | None, expected: str) -> None:
    assert hook(step=value).step == expected


@pytest.mark.parametrize(
    "key, value, allowed",
    [
        ("save_interval", 0, "a whole number from 1 to 10^15"),
        ("save_interval", "x", "a whole number from 1 to 10^15"),
        ("save_interval", 2.5, "a whole number from 1 to 10^15"),
        ("save_interval", True, "a whole number from 1 to 10^15"),
        ("save_interval", [1], "a whole number from 1 to 10^15"),
        ("start_step", -1, "a whole number from 0 to 10^15"),
        ("end_step", "", "a whole number from 0 to 10^15"),
        ("eval.end_step", "never", "a whole number from 0 to 10^15"),
        ("save_steps", "1,x", 'whole numbers from 0 to 10^15, as "3,7" or [3, 7]'),
        ("save_steps", {"a": 1}, 'whole numbers from 0 to 10^15, as "3,7" or [3, 7]'),
        ("save_steps", True, 'whole numbers from 0 to 10^15, as "3,7" or [3, 7]'),
        ("save_all", "maybe", "true or false (also yes/no, on/off, 1/0, in any case)"),
        ("save_all", 2, "true or false (also yes/no, on/off, 1/0, in any case)"),
        ("dry_run", [], "true or false (also yes/no, on/off, 1/0, in any case)"),
        ("include_workers", "two", '"one" or "all"'),
        ("step", "backward", '"update" or "forward"'),
        ("step", 1, '"update" or "forward"'),
        ("include_workers", 1, '"one" or "all"'),
        ("include_regex", 3, 'regular expressions, as "relu,conv1" or ["relu", "conv1"]'),
        ("tensorboard_dir", "", "the path of a folder"),
        (
            "tensorboard_dir",
            "s3://bucket/tb",
            "a folder of this machine",
        ),
    ],
)
def test_wrong_value_is_refused_in_one_sentence(key: str, value: object, allowed: str) -> None:
    sentence = refusal({"HookParameters": {key: value}})
    assert sentence == f"hook.json: HookParameters.{key} is {json.dumps(value)}, allowed is {allowed}"


def test_wrong_value_of_a_collection_is_named_with_the_collection() -> None:
    listed = [
        {"CollectionName": "biases"},
        {"CollectionName": "weights", "CollectionParameters": {"train.save_interval": "often"}},
    ]
    assert refusal({"CollectionConfigurations": listed}) == (
        'hook.json: CollectionConfigurations[weights].train.save_interval is "often", '
        "allowed is a whole number from 1 to 10^15"
    )


def test_unknown_reduction_is_refused_with_all_tokens() -> None:
    assert refusal({"HookParameters": {"reductions": "mean,mode"}}) == (
        'hook.json: HookParameters.reductions is "mean,mode", allowed is of min, max, mean, median, std, '
        "variance, sum, prod, p5, p50, p95, l1, l2, these with abs_ in front, zero_share, nan_count, inf_count, "
        "dead_share, saturated_share, histogram, statistics "
        "(l1_norm for l1 and so on)"
    )


def test_long_value_is_cut_in_the_sentence() -> None:
    assert len(refusal({"HookParameters": {"save_interval": "x" * 5000}})) < 200


def test_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert load({"LocalPath": "runs/1"}).out_dir == str(tmp_path / "runs" / "1")
    assert load({"LocalPath": "~/run"}).out_dir == str(tmp_path / "home" / "run")


def test_the_run_goes_to_the_first_address_unless_the_training_service_copies_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = {"LocalPath": "/tmp/x", "S3OutputPath": "s3://a/b/", "S3Path": "s3://c"}
    settings = load(content)
    assert (settings.out_dir, settings.upload_to) == ("/tmp/x", "s3://a/b")
    assert settings.warnings == ("hook.json: S3Path is not used: the run goes to s3://a/b",)
    assert load({"S3Path": "s3://c"}).upload_to == "s3://c"
    in_store = load({**content, "LocalPath": "s3://d"})
    assert (in_store.out_dir, in_store.upload_to, len(in_store.warnings)) == ("s3://d", None, 2)
    assert in_store.warnings[0] == "hook.json: S3OutputPath is not used: the run goes to s3://d"
    for value in ("bucket", "file:///x", 3):
        told = load({"S3OutputPath": value})
        assert told.upload_to is None
        assert told.warnings == ("hook.json: S3OutputPath is not used: it is no address such as s3://bucket/run",)
    assert load({"LocalPath": "/tmp/x", "S3OutputPath": ""}).warnings == ()
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    assert load(content).warnings == ()
    assert load(content).upload_to is None


@pytest.mark.parametrize(
    "given, taken",
    [
        ("s3://bucket/run/", "s3://bucket/run"),
        (" S3://bucket ", "s3://bucket"),
        ("gs://b/c/d", "gs://b/c/d"),
        ("file:///x/y", "/x/y"),
        ("local:///x", "/x"),
    ],
)
def test_an_address_is_kept_as_it_is_and_one_of_this_machine_is_a_folder(given: str, taken: str) -> None:
    assert load({"LocalPath": given}).out_dir == taken


@pytest.mark.parametrize("value", ["relu, conv1", ["relu", "conv1"], "relu,conv1"], ids=repr)
def test_regex_spellings(value: object) -> None:
    assert hook(include_regex=value).include_regex == ("relu", "conv1")


def test_regex_in_a_list_may_contain_commas() -> None:
    assert hook(include_regex=["a{1,2}"]).include_regex == ("a{1,2}",)


def test_comma_inside_a_regex_of_a_string_is_refused_with_the_way_out() -> None:
    sentence = refusal({"HookParameters": {"include_regex": "relu,a{1,2}"}})
    assert sentence == (
        'hook.json: HookParameters.include_regex is "relu,a{1,2}", allowed is regular expressions (a string '
        "is split "
        'at commas; regexes that contain one go in a list: ["a{1,2}"])'
    )
    assert "regexes that contain one go in a list" in refusal({"HookParameters": {"include_regex": "[a,b]"}})


def test_regex_that_does_not_compile_is_named() -> None:
    sentence = refusal({"HookParameters": {"include_regex": ["ok", "conv(1"]}})
    assert "HookParameters.include_regex" in sentence
    assert "'conv(1' is not a regular expression: missing ), unterminated subpattern" in sentence


def test_trailing_comma_does_not_match_everything() -> None:
    settings = hook(include_regex="relu,")
    assert settings.include_regex == ("relu",)
    assert settings.warnings == (
        "hook.json: an empty regex in HookParameters.include_regex is ignored: it would match every tensor",
    )
