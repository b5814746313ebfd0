from __future__ import annotations

import subprocess
import sys

import pytest

from smd_agent import guard
from smd_agent.config import env


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(guard, "say_once", lambda _key, line: lines.append(line))
    return lines


@pytest.mark.parametrize("word", ["0", "n", "no", "f", "false", "off", "FALSE", "Off", " no "])
def test_every_old_spelling_switches_off(word: str, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setenv("USE_SMDEBUG", word)
    assert env.use_smdebug() is False
    assert said == []


@pytest.mark.parametrize("word", ["1", "y", "yes", "t", "true", "on", "TRUE", ""])
def test_every_old_spelling_leaves_on(word: str, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setenv("USE_SMDEBUG", word)
    assert env.use_smdebug() is True
    assert said == []


def test_unset_is_on_and_strict_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("USE_SMDEBUG", raising=False)
    monkeypatch.delenv("SMD_AGENT_STRICT", raising=False)
    assert env.use_smdebug() is True
    assert env.strict() is False


@pytest.mark.parametrize(
    "rank, size, found",
    [("1", "2", (1, 2)), ("0", "1", (0, 1)), ("2", "2", None), ("", "2", None), ("0", "", None), ("-1", "2", None)],
)
def test_rank_and_size(rank: str, size: str, found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    assert env.rank_and_size() == found


OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
PMI = {"PMI_RANK": "2", "PMI_SIZE": "4"}
SRUN = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}
BATCH = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "MASTER_ADDR": "host"}


@pytest.mark.parametrize(
    "variables, found",
    [
        (OPEN_MPI, (1, 4)),
        ({**OPEN_MPI, "RANK": "5", "WORLD_SIZE": "8"}, (5, 8)),
        ({**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "1"}, (1, 4)),
        (PMI, (2, 4)),
        # Copies that srun starts may be trainings of their own; its PMI says no more than it does.
        ({**PMI, **SRUN}, None),
        ({**PMI, **SRUN, "MPI_LOCALNRANKS": "1"}, (2, 4)),
        (SRUN, None),
        ({**SRUN, "MASTER_ADDR": "host"}, (3, 4)),
        ({**SRUN, "MASTER_ADDR": ""}, None),
        # The batch script itself is alone.
        (BATCH, None),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "many"}, None),
    ],
)
def test_ranks_of_other_launchers(variables: dict[str, str], found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert env.rank_and_size() == found


def test_unknown_spelling_is_on_and_reported(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setenv("USE_SMDEBUG", "nope")
    assert env.use_smdebug() is True
    assert said == [
        "the environment variable USE_SMDEBUG is 'nope', allowed is true or false (also yes/no, on/off, "
        "1/0); "
        "taken as true"
    ]


@pytest.mark.parametrize("text, value", [("2.5", 2.5), ("0", 0.0), ("", 1.0)])
def test_reader_waits_as_told(text: str, value: float, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", text)
    assert env.training_end_delay() == value
    assert said == []


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_unusable_wait_is_the_default_and_reported(text: str, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", text)
    assert env.incomplete_step_window() == 1000
    assert len(said) == 1
    assert "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW" in said[0]


def test_training_job_is_one_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)
    assert not env.in_training_job()
    monkeypatch.setenv("TRAINING_JOB_NAME", "")
    assert env.in_training_job()


@pytest.mark.parametrize("text, pid", [("42", 42), ("", None), ("x", None)])
def test_pid_of_the_launcher(text: str, pid: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMD_AGENT_LAUNCH_PID", text)
    assert env.launch_pid() == pid


def test_variable_is_set_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMD_AGENT_REPORTED", "a")
    env.put("SMD_AGENT_REPORTED", "b")
    assert env.get("SMD_AGENT_REPORTED") == "b"
    env.put("SMD_AGENT_REPORTED", None)
    assert env.get("SMD_AGENT_REPORTED") is None


def test_table_has_every_variable_once() -> None:
    names = [variable.name for variable in env.VARIABLES]
    constants = {
        value
        for key, value in vars(env).items()
        if key.isupper() and isinstance(value, str) and not key.startswith("DEFAULT_")
    }
    assert len(names) == len(set(names))
    assert set(names) == constants


def test_import_loads_no_module_that_the_interpreter_has_not_loaded() -> None:
    code = (
        "import sys; before = set(sys.modules); import smd_agent.config.env; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in (
        "['__future__', 'smd_agent', 'smd_agent.config', 'smd_agent.config.env']",
        "['smd_agent', 'smd_agent.config', 'smd_agent.config.env']",
    )


def test_loading_a_configuration_imports_nothing_heavy() -> None:
    code = (
        "import sys; from smd_agent.config.hook_file import Source; from smd_agent.config.load import load_settings; "
        'load_settings(Source(\'x\', text=\'{"HookParameters": {"reductions": "mean"}}\')); '
        "print(sorted({'numpy', 'google.protobuf', 'wrapt', 'torch', 'difflib', 'logging'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
