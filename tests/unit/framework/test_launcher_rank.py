"""Who is asked for a process's rank where its framework knows of none, and in which order."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest

from smd_agent.config import env
from smd_agent.framework import launcher_rank


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """No launcher and no SageMaker."""
    for variable in env.VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
    monkeypatch.setattr(env, "DEFAULT_RESOURCE_CONFIG_PATH", str(tmp_path / "resourceconfig.json"))


def on_two_hosts(tmp_path):
    (tmp_path / "resourceconfig.json").write_text(json.dumps({"current_host": "b", "hosts": ["a", "b"]}))


def test_a_process_alone():
    assert launcher_rank.rank_and_size("torch") == (0, 1)


def test_a_host_of_sagemaker(tmp_path):
    on_two_hosts(tmp_path)
    assert launcher_rank.rank_and_size("torch") == (1, 2)


def test_a_launcher_knows_better_than_the_hosts(tmp_path, monkeypatch):
    on_two_hosts(tmp_path)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert launcher_rank.rank_and_size("torch") == (2, 4)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert launcher_rank.rank_and_size("torch") == (1, 2)


@pytest.mark.parametrize("begun, found", [(True, (3, 8)), (False, (2, 4))])
def test_horovod_knows_best_once_it_has_begun(monkeypatch, begun, found):
    # Horovod has no wheels; these three functions are all that is asked of it.
    horovod = ModuleType("horovod.torch")
    horovod.is_initialized, horovod.rank, horovod.size = lambda: begun, lambda: 3, lambda: 8
    monkeypatch.setitem(sys.modules, "horovod.torch", horovod)
    monkeypatch.setenv("PMI_RANK", "2")
    monkeypatch.setenv("PMI_SIZE", "4")
    assert launcher_rank.rank_and_size("torch") == found
    assert launcher_rank.rank_and_size("mxnet") == (2, 4)
