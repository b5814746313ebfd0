"""What a hook learns of earlier starts of its training: from files that may be missing, wrong or another run's."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from smd_agent.config.job_files import checkpoint_folder
from smd_agent.core.clock import RunPosition, WatchedPosition
from smd_agent.formats.training_state import StorePlace
from smd_agent.framework.restarts import Restarts
from smd_agent.storage.destination import Destination

STATE = {"training-run": 1, "latest-global-step-saved": 6, "latest-global-step-seen": 7, "latest-mode-step": {}}


@pytest.fixture
def named(tmp_path, monkeypatch):
    file = tmp_path / "checkpointconfig.json"
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(file))
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/last.pt").touch()
    file.write_text(json.dumps({"LocalPath": str(tmp_path / "checkpoints")}))
    return file


def keep(named, *states):
    text = json.dumps([{**STATE, **state} for state in states])
    (named.parent / "checkpoints/metadata.json").write_text(text)


def of(folder):
    return Restarts(Destination(str(folder)))


def test_without_a_named_folder_nothing_is_different(monkeypatch):
    monkeypatch.delenv("CHECKPOINT_CONFIG_FILE_PATH", raising=False)
    restarts = of("run")
    assert (restarts.position, restarts.continued) == (RunPosition, None)


@pytest.mark.parametrize(
    "text, told",
    [
        (None, "the checkpoint configuration <file>, which CHECKPOINT_CONFIG_FILE_PATH names, does not exist"),
        ("{", "<file> is not valid JSON"),
        ('{"LocalPath": 7}', "<file>: LocalPath is 7, allowed is the path of a folder"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(named, capsys, text, told):
    named.unlink()
    if text is not None:
        named.write_text(text)
    assert checkpoint_folder() is None
    line = capsys.readouterr().err
    assert line.startswith("smd_agent: " + told.replace("<file>", str(named)))
    assert line.endswith("where the training stands is not noted\n")


def test_the_newest_state_counts_and_the_run_it_was_of(named, tmp_path):
    run = tmp_path / "run"
    keep(
        named,
        {"latest-global-step-seen": 9, "run-folder": str(run)},
        {"latest-global-step-seen": 9, "run-folder": str(tmp_path / "run-2"), "training-run": 2},
        {"latest-global-step-seen": 4, "run-folder": str(run), "training-run": 2},
    )
    restarts = of(run)
    assert restarts.position is WatchedPosition
    assert restarts.continued == (tmp_path / "run-2", 9)
    assert of(tmp_path / "other").continued is None


def test_a_state_of_the_old_library_gives_numbers_and_no_folder(named, tmp_path):
    keep(named, {})
    assert of(tmp_path / "run").continued is None


def test_a_damaged_file_is_told(named, tmp_path, capsys):
    (tmp_path / "checkpoints/metadata.json").write_text('[{"latest')
    assert of(tmp_path / "run").continued is None
    assert "steps are counted from 0" in capsys.readouterr().err


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_step_that_is_open_or_held_is_one_that_the_store_lacks(named, tmp_path, unfinished):
    recorder = SimpleNamespace(unfinished=unfinished, step_saved=7)
    writer = SimpleNamespace(
        started=True, root=tmp_path, place=StorePlace("s3://bucket/run", "claim.smd", "mark", (5,))
    )
    _, store = of(tmp_path / "run")._place(SimpleNamespace(recorder=recorder), writer)
    assert store.waiting == ((5, 7) if unfinished else (5,))
