"""The command watch: what it prints of a run that goes on, when it ends, and how it draws a screen."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

from smd_agent.cli import watch
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.claim import Claim

LOSS = "CrossEntropyLoss_output_0"


@pytest.fixture
def between(monkeypatch):
    """Have things done between two looks, one each time; more looks than that are an error."""

    def do(*actions):
        left = iter(actions)
        monkeypatch.setattr(watch.time, "sleep", lambda seconds: next(left)())

    return do


@pytest.fixture
def losses(run):
    """Write the next steps of a run."""
    written = []

    def write(*values, mode=ModeKeys.TRAIN):
        for value in values:
            run.step(len(written), {LOSS: np.float32(value)}, mode)
            os.utime(run.root / f"index/000000000/{len(written):012}_worker_0.json", (1000 + len(written),) * 2)
            written.append(value)

    run.collections(losses="[Ll]oss")
    return write


def test_a_line_for_each_look_that_brings_steps(losses, run, between, command):
    losses(3, 2)
    between(lambda: losses(1), lambda: None, lambda: (losses(0.5, 0.25), run.end()))
    code, out, err = command("watch")
    assert (code, err) == (0, [])
    assert out[:4] == [
        f"Run      {run.root}",
        f"TRAIN step 1  {LOSS} 2  1 steps/s",
        f"TRAIN step 2  {LOSS} 1  1 steps/s",
        f"TRAIN step 4  {LOSS} 0.25  1 steps/s",
    ]
    assert out[4] == "State    finished"
    assert re.fullmatch(r"Verdict  no findings in \d+ rules? over 5 steps", out[5])
    assert len(out) == 6


def test_training_and_evaluation_stand_in_one_line(losses, run, between, command):
    losses(3)
    between(lambda: (losses(2), losses(2.5, mode=ModeKeys.EVAL), run.end()))
    assert command("watch")[1][2] == f"TRAIN step 1  {LOSS} 2; EVAL step 2  {LOSS} 2.5  1 steps/s"


def test_a_finding_is_told_once_and_as_it_comes(losses, run, between, command):
    losses(3, 2)
    between(lambda: losses(np.nan), lambda: losses(np.nan), lambda: (losses(np.nan), run.end()))
    code, out, _ = command("watch")
    assert code == 1
    (place,) = [number for number, line in enumerate(out) if line.startswith("problem  LossNotFinite: ")]
    assert out[place - 1].startswith("TRAIN step 2 ")
    assert next(line for line in out[place:] if line.startswith("TRAIN")).startswith("TRAIN step 3 ")
    assert out[-1].startswith("Verdict  1 finding: loss not finite at step 2 (finite at 1)")


def test_it_may_be_started_before_the_run(losses, run, between, command):
    empty = run.root.rename(run.root.with_name("later"))
    between(lambda: None, lambda: (empty.rename(run.root), losses(1), run.end()))
    code, out, err = command("watch")
    assert code == 0
    assert err == [f"smd_agent: there is no run in {run.root} yet; waiting for it (Ctrl-C ends this)"]
    assert out[1].startswith("TRAIN step 0 ")


def test_a_run_that_was_cut_off_ends_it(losses, run, between, command):
    losses(3, 2)
    claim = Claim(run.root)
    assert claim.acquire() is None
    claim.sign()

    def cut_off():
        # Another process had this number then.
        claim.path.write_text(claim.path.read_text().replace('"started": "', '"started": "9'))

    between(cut_off)
    _, out, _ = command("watch")
    claim.release()
    assert out[-2].startswith(f"State    was cut off: process {os.getpid()} is gone")
    assert " so far" not in out[-1]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_time_that_cannot_be_kept(losses, command, seconds):
    code, _, err = command("watch", "--every", seconds)
    assert code == 2
    assert err == [f"smd_agent: --every is {float(seconds):g}, and 0.1 seconds is the shortest"]


def test_a_file_is_not_waited_for(run, command):
    run.root.write_text("mine")
    code, _, err = command("watch")
    assert code == 2
    assert len(err) == 1


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, and so many lines."""

    def of(lines):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("LINES", str(lines))

    return of


def test_a_screen_is_drawn_again_and_stays_at_the_end(losses, run, between, terminal, capsys):
    losses(3, 2, 1)
    between(lambda: losses(0.5), lambda: run.end())
    terminal(24)
    assert watch.run(watch_arguments(run)) == 0
    own, last = capsys.readouterr().out.split("\x1b[?1049l")
    assert own.startswith("\x1b[?1049h")
    first, second = own.split("\x1b[H")[1:]
    assert "Steps    TRAIN 2 (3 saved steps); 1 steps/s\x1b[K\n" in first
    assert "Verdict  no findings so far in " in second
    assert re.search(rf"^{LOSS} TRAIN \S+ +3 +0.5 ", second, re.M)
    assert last.startswith(f"Run      {run.root}\nState    finished\nSteps    TRAIN 3 (4 saved steps); 1 steps/s\n")
    assert "\x1b" not in last


def test_a_screen_has_no_more_lines_than_the_terminal(losses, run, between, terminal, capsys):
    losses(3, np.nan)
    between(lambda: run.end())
    terminal(7)
    assert watch.run(watch_arguments(run)) == 1
    frame = capsys.readouterr().out.split("\x1b[H")[1].partition("\x1b[J")[0].splitlines()
    assert len(frame) == 6
    assert re.fullmatch(r"\.\.\. \d+ more lines\x1b\[K", frame[-1])
    assert all(len(line.removesuffix("\x1b[K")) <= 80 for line in frame)


def test_hostile_names_do_not_act_on_the_terminal(run, between, terminal, capsys):
    run.collections(losses="loss").step(0, {"loss\x1b[2J": np.float32(1)}).step(1, {"loss\x1b[2J": np.float32(2)})
    between(lambda: run.end())
    terminal(24)
    watch.run(watch_arguments(run))
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert "b[2J TRAIN" in out


def watch_arguments(run):
    import argparse

    parser = argparse.ArgumentParser()
    watch.prepare_parser(parser)
    return parser.parse_args([str(run.root)])
