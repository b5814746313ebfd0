"""Hosts of a SageMaker job, read from the file that it gives each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smd_agent.config import env, job_files


@pytest.fixture
def resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "resourceconfig.json"
    monkeypatch.setattr(env, "DEFAULT_RESOURCE_CONFIG_PATH", str(path))
    return path


@pytest.mark.parametrize(
    "current, all_hosts, found",
    [
        ("algo-1", ["algo-1"], (0, 1)),
        ("algo-2", ["algo-1", "algo-2"], (1, 2)),
        # All hosts count alike, in whatever order each is told of them.
        ("algo-10", ["algo-2", "algo-10", "algo-1"], (1, 3)),
    ],
)
def test_the_place_of_this_host(current: str, all_hosts: list[str], found: object, resources: Path) -> None:
    # As SageMaker writes it.
    text = {"current_host": current, "current_instance_type": "ml.m5.large", "hosts": all_hosts}
    resources.write_text(json.dumps({**text, "network_interface_name": "eth0"}))
    assert job_files.rank_and_size_of_host() == found


def test_elsewhere_there_is_no_file_and_no_word(resources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert job_files.rank_and_size_of_host() is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "{}",
        '{"current_host": "a", "hosts": "a"}',
        '{"current_host": "a", "hosts": ["b"]}',
        '{"current_host": 1, "hosts": [1]}',
    ],
)
def test_a_file_that_cannot_be_understood_is_one_line(
    text: str, resources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    resources.write_text(text)
    assert job_files.rank_and_size_of_host() is None
    assert job_files.rank_and_size_of_host() is None
    (line,) = capsys.readouterr().err.splitlines()
    assert str(resources) in line
    assert line.endswith("; this host counts as the only one")
