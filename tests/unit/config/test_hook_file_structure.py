from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness.hook_files import hook, load, refusal

from smd_agent.config.hook_file import Source, find_source
from smd_agent.config.load import load_settings
from smd_agent.core.save_config import SaveConfig
from smd_agent.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "content, sentence",
    [
        ([], "hook.json holds [], allowed is a JSON object ({...})"),
        ({"HookParameters": "x"}, 'hook.json: HookParameters is "x", allowed is a JSON object ({...})'),
        (
            {"CollectionConfigurations": {"CollectionName": "a"}},
            'hook.json: CollectionConfigurations is {"CollectionName": "a"}, allowed is a list ([...])',
        ),
        (
            {"CollectionConfigurations": ["weights"]},
            'hook.json: CollectionConfigurations[0] is "weights", allowed is a JSON object ({...})',
        ),
        (
            {"CollectionConfigurations": [{}]},
            "hook.json: CollectionConfigurations[0].CollectionName is missing, allowed is a collection's "
            "name "
            "(a string)",
        ),
        (
            {"CollectionConfigurations": [{"CollectionName": 3}]},
            "hook.json: CollectionConfigurations[0].CollectionName is 3, allowed is a string that is not empty",
        ),
        (
            {"CollectionConfigurations": [{"CollectionName": "a", "CollectionParameters": "x"}]},
            'hook.json: CollectionConfigurations[0].CollectionParameters is "x", allowed is a JSON object ({...})',
        ),
        (
            {"LocalPath": "s3:///"},
            'hook.json: LocalPath is "s3:///", allowed is a folder, or an address such as s3://bucket/run',
        ),
        ({"LocalPath": ""}, 'hook.json: LocalPath is "", allowed is the path of a folder'),
    ],
)
def test_wrong_structure_is_refused_in_one_sentence(content: object, sentence: str) -> None:
    assert refusal(content) == sentence


def test_unknown_keys_are_named_with_the_nearest_known_one() -> None:
    listed = [
        {
            "CollectionName": "weights",
            "CollectionParameter": {},
            "CollectionParameters": {"include_regx": "a"},
        }
    ]
    settings = load(
        {
            "LocalPaht": "x",
            "HookParameters": {"save_intervall": 3, "evaluate.save_interval": 2, "verbosity": 1},
            "CollectionConfigurations": listed,
        }
    )
    assert settings.warnings == (
        "hook.json: the key LocalPaht is unknown and ignored; did you mean LocalPath?",
        "hook.json: the key HookParameters.save_intervall is unknown and ignored; did you mean save_interval?",
        "hook.json: the key HookParameters.evaluate.save_interval is unknown and ignored; did you mean "
        "eval.save_interval?",
        "hook.json: the key HookParameters.verbosity is unknown and ignored",
        "hook.json: the key CollectionConfigurations[0].CollectionParameter is unknown and ignored; did you "
        "mean "
        "CollectionParameters?",
        "hook.json: the key CollectionConfigurations[weights].include_regx is unknown and ignored; did you "
        "mean "
        "include_regex?",
    )


def test_collection_that_nothing_can_join_is_named() -> None:
    settings = load({"CollectionConfigurations": [{"CollectionName": "gradeints"}, {"CollectionName": "all"}]})
    assert settings.include_collections == ("gradeints", "all")
    assert settings.warnings == (
        "hook.json: there is no collection gradeints: it is not built in, and has no include_regex here; "
        "did you mean gradients?",
    )
    assert settings.unfilled == ("gradeints",)


def test_a_collection_with_regexes_of_its_own_may_have_any_name() -> None:
    listed = [{"CollectionName": "gradiants", "CollectionParameters": {"include_regex": "grad"}}]
    settings = load({"CollectionConfigurations": listed})
    assert (settings.warnings, settings.unfilled) == ((), ())


@pytest.mark.parametrize(
    "keys, of",
    [
        ({"start_step": 8, "end_step": 4}, ""),
        ({"start_step": 8, "end_step": 8}, ""),
        ({"start_step": "8", "eval.end_step": "4"}, " of EVAL"),
    ],
)
def test_steps_that_end_before_they_start_are_named(keys: dict[str, Any], of: str) -> None:
    said = f"saves no step{of}: start_step is 8, save_interval 500, and end_step, "
    (warning,) = hook(**keys).warnings
    assert warning.startswith(f"hook.json: HookParameters {said}")
    listed = [{"CollectionName": "weights", "CollectionParameters": keys}]
    (warning,) = load({"CollectionConfigurations": listed}).warnings
    assert warning.startswith(f"hook.json: CollectionConfigurations[weights] {said}")


@pytest.mark.parametrize(
    "keys",
    [
        {"end_step": 0},
        {"start_step": 8, "end_step": 4, "save_steps": "2"},
        {"start_step": 8, "end_step": 9, "save_interval": 8},
    ],
)
def test_steps_that_are_few_or_none_by_intention_are_not_named(keys: dict[str, Any]) -> None:
    assert hook(**keys).warnings == ()


def test_bad_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "hook.json"
    path.write_text('{\n  "LocalPath": "x",\n}\n')
    with pytest.raises(ConfigError) as refused:
        load_settings(Source(str(path)))
    # What the parser calls it, and the column, differ between Python versions.
    assert str(refused.value).startswith(f"{path} is not valid JSON at line ")
    assert ", column " in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[" * 100_000])
def test_file_that_is_no_json_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hook.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"hook\.json") as refused:
        load_settings(Source(str(path)))
    assert "\n" not in str(refused.value)


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "hook.json"
    path.write_bytes(b'\xef\xbb\xbf{"LocalPath": "/tmp/x"}')
    assert load_settings(Source(str(path))).out_dir == "/tmp/x"


def test_missing_file_and_folder_say_so(tmp_path: Path) -> None:
    path = tmp_path / "hook.json"
    with pytest.raises(ConfigError) as refused:
        load_settings(Source(str(path), origin="SMDEBUG_CONFIG_FILE_PATH"))
    assert str(refused.value) == (
        f"the hook configuration {path}, which SMDEBUG_CONFIG_FILE_PATH names, does not exist"
    )
    assert isinstance(refused.value.__cause__, FileNotFoundError)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(Source(str(tmp_path)))


def test_key_that_stands_twice_is_reported() -> None:
    settings = load_settings(Source("h", text='{"HookParameters": {"save_interval": 2, "save_interval": 3}}'))
    assert settings.save_config == SaveConfig(save_interval=3)
    assert settings.warnings == ("h: the key save_interval stands there twice and the last one counts",)


def test_inline_configuration_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", "hook.json")
    assert find_source() == Source("hook.json", origin="SMDEBUG_CONFIG_FILE_PATH")
    monkeypatch.setenv("SMD_AGENT_HOOK", '{"LocalPath": "/tmp/x"}')
    source = find_source()
    assert source is not None
    settings = load_settings(source)
    assert settings.source == "SMD_AGENT_HOOK"
    assert settings.out_dir == "/tmp/x"


def test_nothing_set_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smd_agent.config.env.DEFAULT_CONFIG_PATH", "/nowhere/hook.json")
    assert find_source() is None
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", "")
    assert find_source() is None


def test_settings_cannot_be_changed() -> None:
    settings = load({})
    with pytest.raises(AttributeError):
        settings.out_dir = "x"  # type: ignore[misc]
