"""A configuration that was made to do harm is refused in a sentence of readable length, before the training starts."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from smd_agent.cli import main
from smd_agent.config import env
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.save_config import SaveConfig
from smd_agent.errors import ConfigError

READABLE = 400


def settings(content: Any) -> Any:
    text = content if isinstance(content, str) else json.dumps(content)
    return load_settings(Source("hook.json", text=text))


def refusal(content: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        settings(content)
    sentence = str(refused.value)
    assert sentence.startswith("hook.json")
    assert sentence.isprintable()
    assert len(sentence) <= READABLE
    return sentence


def with_interval(number: str) -> str:
    return f'{{"HookParameters": {{"save_interval": {number}}}}}'


@pytest.mark.parametrize("digits", [5000, 200, 31, 16])
def test_a_number_with_many_digits_is_refused_by_key_and_value(digits: int) -> None:
    sentence = refusal(with_interval("9" * digits))
    assert "HookParameters.save_interval is" in sentence
    assert "999" in sentence
    assert "to 10^15" in sentence


@pytest.mark.parametrize("number", ["1000000000000000000", "1e18", '"1000000000000000000"', '"1000000000000001"'])
def test_a_step_beyond_all_trainings_is_refused(number: str) -> None:
    assert "to 10^15" in refusal(with_interval(number))
    assert "to 10^15" in refusal(f'{{"HookParameters": {{"save_steps": [{number}]}}}}')


def test_the_largest_step_is_accepted() -> None:
    assert settings(with_interval("1000000000000000")).save_config.save_interval == 10**15


def test_a_large_number_given_in_a_program_is_a_whole_number() -> None:
    assert SaveConfig(end_step=10**18 + 1).end_step == 10**18 + 1


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "\0"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    assert "LocalPath is" in refusal({"LocalPath": path})


@pytest.mark.parametrize(
    "parameters",
    [
        {"include_regex": "(" * 100_000},
        {"include_regex": ["x" * 100_000 + "("]},
        {"include_regex": ["a{99999999999999999999}"]},
        {"include_regex": ["(" * 5000 + ")" * 5000]},
        {"save_all": "\x1b[31m" * 100},
        {"reductions": ["\u202e" * 1000]},
        {"save_interval": [[[]] * 10_000]},
    ],
    ids=lambda parameters: json.dumps(parameters)[:40],
)
def test_what_is_refused_is_quoted_in_part(parameters: dict[str, Any]) -> None:
    key = next(iter(parameters))
    assert f"HookParameters.{key} is" in refusal({"HookParameters": parameters})


def test_a_long_name_of_a_collection_is_quoted_in_part() -> None:
    entry = {"CollectionName": "\x1b" * 10_000, "CollectionParameters": {"save_interval": -1}}
    assert "save_interval is -1" in refusal({"CollectionConfigurations": [entry]})


def test_warnings_are_readable_and_few() -> None:
    content = {f"{number}\x1b\n{'x' * 10_000}": 1 for number in range(1000)}
    warnings = settings({"HookParameters": content}).warnings
    assert len(warnings) <= 10
    assert all(warning.isprintable() and len(warning) <= READABLE for warning in warnings)
    assert "990 further keys" in warnings[-1] or "995 further keys" in warnings[-1]


def test_many_doubled_keys_take_no_time() -> None:
    text = "{" + ", ".join(f'"k{number % 50_000}": 1' for number in range(100_000)) + "}"
    start = time.process_time()
    warnings = settings(text).warnings
    assert time.process_time() - start < 5
    assert len(warnings) <= 20


@pytest.mark.parametrize("text", ["9" * 5000, "1" + "0" * 18, "²", "٣" * 5000])
def test_the_launcher_refuses_such_numbers(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--every", text, "-c", "pass"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "option --every is" in line
    assert len(line) <= READABLE


@pytest.mark.parametrize("name", [env.RANK, env.LAUNCH_PID])
def test_numbers_of_the_environment_that_are_none_are_passed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.RANKS, "9" * 5000)
    monkeypatch.setenv(name, "9" * 5000)
    assert env.rank_and_size() is None
    assert env.launch_pid() is None
