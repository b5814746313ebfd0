"""The states beside a program's checkpoints: the step of each, whatever is written and however."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from smd_agent import stalled_disk
from smd_agent.core.clock import ModeClock, WatchedPosition
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.training_state import TrainingState, parse_states, states_text
from smd_agent.storage import folder_events
from smd_agent.storage.state_keeper import PATIENCE_SECONDS, StateKeeper, read_states


class Training:
    """Steps of no framework, and a keeper that follows them."""

    def __init__(self, folder, earlier=(), keeps=True):
        self.folder = folder
        self.waited = []
        self.position = WatchedPosition(ModeClock(ModeKeys.TRAIN))
        self.keeper = StateKeeper(folder, earlier, self.state, lambda: keeps, self.wait)
        self.started = self.keeper.start()
        self.position.before_step = self.keeper.before_step
        self.step()

    def state(self):
        step = self.position.newest
        return TrainingState(1, step, step, {ModeKeys.TRAIN: step, ModeKeys.GLOBAL: step}, "/run")

    def wait(self):
        self.waited.append(self.position.newest)

    def step(self, steps=1):
        for _ in range(steps):
            self.position.begin(self.position.clock)

    def seen(self):
        """The steps of the states that are on disk."""
        self.keeper.settle()
        file = self.folder / "metadata.json"
        return [state.seen for state in parse_states(file.read_text())] if file.exists() else []


@pytest.fixture
def training(tmp_path):
    training = Training(tmp_path)
    yield training
    training.keeper.stop()


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"weights")


def test_each_checkpoint_has_the_step_in_which_it_was_written(training):
    training.step(2)
    write(training.folder / "first.pt")
    # Whoever writes a new one over it gives it its name last.
    training.step(3)
    assert [state.seen for state in read_states(training.folder)] == [2]
    write(training.folder / "first.pt.new")
    os.replace(training.folder / "first.pt.new", training.folder / "first.pt")
    training.step()
    assert [state.seen for state in read_states(training.folder)] == [2, 5]
    with open(training.folder / "first.pt", "r+b") as file:
        file.write(b"more")
    training.step(4)
    assert training.seen() == [2, 5, 6]
    assert read_states(training.folder)[-1] == TrainingState(1, 6, 6, {ModeKeys.TRAIN: 6, ModeKeys.GLOBAL: 6}, "/run")


def test_it_is_on_disk_before_the_next_step_begins(training):
    training.step(3)
    write(training.folder / "last.pt")
    deadline = time.monotonic() + 20
    while not (training.folder / "metadata.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert training.seen() == [3]


@pytest.mark.parametrize("keeps", [True, False], ids=["first worker", "others"])
def test_the_step_after_a_checkpoint_waits_for_all_that_was_saved(tmp_path, keeps):
    training = Training(tmp_path, keeps=keeps)
    training.step(2)
    write(tmp_path / "a.pt")
    write(tmp_path / "b.pt")
    training.step(3)
    assert training.waited == [2]
    write(tmp_path / "a.pt")
    training.keeper.settle()
    training.step(2)
    assert training.waited == [2, 5]
    training.keeper.stop()


def test_a_checkpoint_that_the_thread_takes_while_a_step_asks_is_not_missed(training):
    training.step(2)

    def is_ready(seconds):
        """Tell that nothing has happened: meanwhile something has, and the thread has done all that there is to do."""
        write(training.folder / "last.pt")
        deadline = time.monotonic() + 20
        while not training.keeper._noted:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return []

    training.keeper._is_ready = is_ready
    training.step()
    assert training.waited == [2]


def test_what_is_written_below_counts_and_a_folder_that_gets_another_name_is_the_same(training):
    training.step()
    write(training.folder / "tmp-step-1/inner/model.pt")
    write(training.folder / "tmp-step-1/optimizer.pt")
    training.step()
    os.rename(training.folder / "tmp-step-1", training.folder / "step-1")
    training.step(2)
    assert training.seen() == [1]
    write(training.folder / "step-1/inner/model.pt")
    training.step()
    write(training.folder.parent / "outside")
    os.rename(training.folder.parent / "outside", training.folder / "step-1/moved.pt")
    training.step()
    assert training.seen() == [1, 4, 5]


def test_a_folder_that_is_made_later_or_anew_is_not_made_here(tmp_path):
    folder = tmp_path / "to/come"
    training = Training(folder)
    training.step(2)
    (tmp_path / "something.pt").touch()
    training.step()
    assert not (tmp_path / "to").exists()
    write(folder / "a.pt")
    training.step()
    (tmp_path / "other.pt").touch()
    training.step(2)
    assert training.seen() == [3]
    shutil.rmtree(folder)
    training.step()
    write(folder / "b.pt")
    training.step()
    assert training.seen() == [3, 7]
    training.keeper.stop()


def test_a_folder_that_has_gone_is_looked_for_before_the_next_step(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    events = folder_events.FolderEvents(folder, lambda name: True)
    folder.rmdir()
    assert events.completes(events.read())
    events.close()


def test_logs_and_what_is_only_read_are_no_checkpoints(training):
    write(training.folder / "a.pt")
    training.step(2)
    for name in ("log.txt", "metrics.csv", "a.pt.sagemaker-uploaded", "events.out.tfevents.1", "metadata.json.bak"):
        write(training.folder / name)
        training.step()
    (training.folder / "a.pt").read_bytes()
    os.remove(training.folder / "a.pt")
    training.step()
    assert training.seen() == [0]


def test_one_that_takes_several_steps_has_the_step_in_which_it_began(training):
    training.step(3)
    with open(training.folder / "slow.pt", "wb") as file:
        file.write(b"some")
        training.step(2)
        file.write(b"more")
    training.step()
    assert training.seen() == [3]


def test_only_one_worker_writes(tmp_path):
    training = Training(tmp_path, keeps=False)
    write(tmp_path / "a.pt")
    training.step()
    assert training.seen() == []
    training.keeper.stop()


def test_states_of_earlier_starts_stay_and_the_list_has_an_end(tmp_path):
    earlier = [TrainingState(1, None, step, {ModeKeys.TRAIN: step}) for step in range(1200)]
    training = Training(tmp_path, earlier)
    training.step(1500)
    write(tmp_path / "a.pt")
    training.step()
    assert training.seen() == [*range(201, 1200), 1500]
    training.keeper.stop()


def test_a_state_needs_a_checkpoint_beside_it(tmp_path):
    (tmp_path / "metadata.json").write_text(states_text([TrainingState(1, 2, 3, {})]))
    assert read_states(tmp_path) == []
    assert read_states(tmp_path / "missing") == []
    write(tmp_path / "a.pt")
    assert [state.seen for state in read_states(tmp_path)] == [3]


def test_the_old_librarys_file_is_read_and_other_text_is_refused():
    old = {"training-run": 0, "latest-global-step-saved": None, "latest-global-step-seen": 7}
    state = parse_states(json.dumps([{**old, "latest-mode-step": {"TRAIN": 5, "EVAL": 1, "OTHER": 3}}]))
    assert state == [TrainingState(0, None, 7, {ModeKeys.TRAIN: 5, ModeKeys.EVAL: 1})]
    for text in ("", "[", "{}x", "7", "[7]", '["a"]', json.dumps([old]), '{"a": 1}', "[" * 10**5):
        with pytest.raises(ValueError):  # noqa: PT011 - of any kind
            parse_states(text)


def test_a_file_that_cannot_be_written_is_told_once_and_costs_nothing_else(training, capsys):
    (training.folder / "metadata.json").mkdir()
    for _ in range(3):
        write(training.folder / "a.pt")
        training.step()
    training.keeper.settle()
    assert training.position.newest == 3
    told = capsys.readouterr().err
    assert told.count(f"where the training stands is not noted in {training.folder}/metadata.json") == 1


def test_nobody_waits_for_a_thread_that_has_failed(training, monkeypatch, tmp_path_factory):
    """It fails while the end of the program waits for it, or just before."""
    waits = []
    monkeypatch.setattr(stalled_disk, "STALL_SECONDS", 2.0)
    monkeypatch.setattr(stalled_disk, "waited_in_vain", waits.append)
    keeper = training.keeper
    failing = threading.Event()

    def fail(error):
        failing.set()
        time.sleep(0.2)

    def state():
        assert threading.current_thread() is not keeper.thread
        return training.state()

    monkeypatch.setattr(keeper, "_tell", fail)
    monkeypatch.setattr(keeper, "_now", state)
    ready = tmp_path_factory.mktemp("ready") / "first.pt"
    write(ready)
    # The thread is told of one event alone.
    os.replace(ready, training.folder / "first.pt")
    assert failing.wait(10)
    keeper.settle()
    keeper.thread.join(10)
    write(training.folder / "second.pt")
    training.step(3)
    keeper.settle()
    assert waits == []
    # No later step looks into the folder any more.
    assert keeper._is_ready is None
    assert keeper._patience == PATIENCE_SECONDS


def test_where_the_system_does_not_tell_one_line_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(folder_events.sys, "platform", "other")
    training = Training(tmp_path)
    assert not training.started
    write(tmp_path / "a.pt")
    training.step(2)
    training.keeper.settle()
    assert training.seen() == []
    assert "is not noted" in capsys.readouterr().err


def test_nothing_is_left_open(tmp_path):
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    training = Training(tmp_path)
    training.step()
    training.keeper.stop()
    training.keeper.thread.join(20)
    training.step()
    del training
    # Those of the tests before may be closed only now.
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_forked_child_leaves_it_to_its_parent(training):
    training.step(2)
    write(training.folder / "a.pt")
    pid = os.fork()
    if pid == 0:
        training.step(5)
        training.keeper.settle()
        os._exit(0)
    os.waitpid(pid, 0)
    training.step()
    assert training.seen() == [2]


CLOSES = """
import os, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from test_state_keeper import Training
training = Training(Path({folder!r}))
os.closerange(3, 4096)
files = [open(f"{folder}/{{i}}.pt", "wb") for i in range(20)]
training.step(3)
training.keeper.settle()
for file in files:
    file.write(b"x" * 10)
    file.close()
print([os.path.getsize(file.name) for file in files] == [10] * 20)
"""


def test_a_program_that_closes_all_files_keeps_its_own(tmp_path):
    code = CLOSES.format(here=os.path.dirname(__file__), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert done.stderr.count("is not noted") <= 1
