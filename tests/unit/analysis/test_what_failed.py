"""A run in which a part of the agent failed says so first, whatever looks at it."""

from __future__ import annotations

import json

import pytest
from harness.written_runs import save, started

from smd_agent import cli
from smd_agent.core.failure_record import Failure
from smd_agent.storage.worker_files_reader import read_failures

LOSSES = Failure("losses", "saving a loss", "ValueError: no", 1, 1, "TRAIN")
STEPS = Failure("steps", "opening a step", "ValueError: no", 0, 2, "TRAIN", 3, off=True)
SAID = [
    "Failed   losses of step 1 may be missing: saving a loss failed (ValueError: no)",
    "Failed   nothing is saved after step 2: opening a step failed 3 times (ValueError: no)",
]


@pytest.fixture
def folder(tmp_path):
    """A run of three steps in which something failed."""
    run = started(tmp_path / "run")
    save(run, 0, 1, 2)
    run.write_failures([LOSSES])
    run.write_failures([LOSSES, STEPS])
    run.close(end_marker=True)
    return tmp_path / "run"


def test_what_is_noted_is_read(folder):
    assert read_failures(folder) == [("worker_0", LOSSES), ("worker_0", STEPS)]


@pytest.mark.parametrize("command, before", [("check", 1), ("ls", 0), ("show", 0), ("info", 0), ("watch", 1)])
def test_it_is_said_first(command, before, folder, capsys):
    cli.main([command, str(folder)])
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Failed"))
    assert lines[at : at + 2] == SAID
    assert at <= before or command == "watch"
    assert not any("cut off" in line or "nothing found" in line for line in lines)


def test_nothing_found_in_such_a_run_is_said_of_what_was_saved(folder, capsys):
    assert cli.main(["check", str(folder)]) == 2
    judged = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Judged")]
    assert judged[0].endswith("no findings in what was saved")
    cli.main(["ls", str(folder)])
    verdict = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Verdict")]
    assert verdict == [] or "in what was saved" in verdict[0] or "no rule could judge" in verdict[0]


def test_programs_are_told_too(folder, capsys):
    cli.main(["check", str(folder), "--json"])
    assert json.loads(capsys.readouterr().out)["capture_failures"] == [line[len("Failed") :].strip() for line in SAID]


def test_the_page_says_it_below_its_title(folder, tmp_path):
    cli.main(["report", str(folder), "-o", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text()
    assert all(line[len("Failed") :].strip() in page for line in SAID)


def test_a_run_without_failures_says_nothing(tmp_path, capsys):
    run = started(tmp_path / "run")
    save(run, 0)
    run.write_failures([])
    run.close(end_marker=True)
    assert not (tmp_path / "run/failures").exists()
    cli.main(["ls", str(tmp_path / "run")])
    assert "Failed" not in capsys.readouterr().out
