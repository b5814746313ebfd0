"""Placeholders in the names of folders: what they stand for, and what is none."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness.hook_files import load, refusal

from smd_agent.cli.run import configure
from smd_agent.config import env
from smd_agent.config.hook_file import find_source
from smd_agent.config.load import load_settings
from smd_agent.config.placeholders import fill_in, literal


def local_path(text: str) -> str:
    return load({"LocalPath": text}).out_dir


@pytest.fixture(autouse=True)
def first_of_its_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that it is taken away again.
    monkeypatch.setenv(env.LAUNCHED, "")


def test_what_they_stand_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    date, host, pid, rank = local_path("/runs/{date}/{host}/{pid}/rank-{rank}").split("/")[2:]
    assert re.fullmatch(r"\d{8}-\d{6}", date)
    assert (host, pid, rank) == (socket.gethostname(), str(os.getpid()), "rank-3")


def test_without_a_rank_it_is_0_and_only_a_named_rank_parts_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    settings = load({"LocalPath": "/runs/{rank}"})
    assert (settings.out_dir, settings.apart) == ("/runs/0", True)
    assert not load({"LocalPath": "/runs/{host}"}).apart
    assert not load({"LocalPath": "/runs/{{rank}}"}).apart


def test_child_processes_have_date_and_pid_of_the_first_one_and_the_next_launch_its_own() -> None:
    ours = fill_in("{date} {pid}")
    code = "from smd_agent.config.placeholders import fill_in; print(fill_in('{date} {pid}'))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == ours
    env.put(env.LAUNCHED, "20010203-040506 7")
    assert fill_in("{date} {pid}") == "20010203-040506 7"
    configure({"--out": "/runs/{pid}"}, ["script.py"])
    source = find_source()
    assert source is not None
    assert load_settings(source).out_dir == f"/runs/{os.getpid()}"
    env.put(env.HOOK, None)


@pytest.mark.parametrize(
    "text, folder",
    [
        ("/runs/{{host}}", "/runs/{host}"),
        ("/runs/{{anything}}", "/runs/{anything}"),
        ("/runs/{}/{a b}/x{/y}", "/runs/{}/{a b}/x{/y}"),
        ("/runs/{a-b}", "/runs/{a-b}"),
    ],
)
def test_other_braces_stand_for_themselves(text: str, folder: str) -> None:
    assert local_path(text) == folder


@pytest.mark.parametrize("text", ["/a/{host}/{{rank}}", "{x", "{{{y}}}", "plain", "{}{{}}"])
def test_a_name_can_be_kept_as_it_is(text: str) -> None:
    assert fill_in(literal(text)) == text


def test_an_unknown_one_is_told_with_file_key_value_and_what_is_allowed() -> None:
    assert refusal({"LocalPath": "/runs/{node}"}) == (
        'hook.json: LocalPath is "/runs/{node}", allowed is {host}, {pid}, {rank} and {date} in the path of a folder, '
        "not {node}; {{node}} stands for {node}"
    )


def test_what_the_current_folder_is_called_is_no_placeholder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "{host} {x}"
    here.mkdir()
    monkeypatch.chdir(here)
    for options, expected in (({"--out": "runs"}, here / "runs"), ({}, here / "smd_runs")):
        env.put(env.HOOK, None)
        configure(options, ["script.py"])
        source = find_source()
        assert source is not None
        assert load_settings(source).out_dir.startswith(str(expected))
    env.put(env.HOOK, None)
