"""A path that names something other than a file is answered with a sentence, not waited for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def refusal(path: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_settings(Source(path))
    return str(refused.value)


@pytest.mark.usefixtures("impatient")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "hook.json")
    os.mkfifo(path)
    assert refusal(path) == f"the hook configuration {path} cannot be read: it is not a regular file"


@pytest.mark.usefixtures("impatient")
def test_a_device_without_end_is_refused() -> None:
    assert refusal("/dev/zero") == "the hook configuration /dev/zero cannot be read: it is not a regular file"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)) == f"the hook configuration {tmp_path} cannot be read: Is a directory"


def test_a_file_that_cannot_be_a_configuration_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "hook.json"
    with path.open("wb") as file:
        file.truncate(8 << 30)
    assert refusal(str(path)) == f"the hook configuration {path} cannot be read: File too large"
