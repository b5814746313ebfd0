"""A disk that stands still: nothing that a program does waits for it for ever, and it is waited for in full once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from harness.written_runs import COLLECTIONS, readable, save, started

from smd_agent import descriptors, session, stalled_disk
from smd_agent.config.load import read_settings
from smd_agent.core.hook import BaseHook
from smd_agent.errors import ConfigError
from smd_agent.framework.hook import FrameworkHook
from smd_agent.storage.folder_choice import refuse_finished_run
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.writer_thread import Writer

PATIENCE = 0.4
LAST_LOOK = 0.05
# What a test may take that waits once in full, and for what it does beside.
ONCE = PATIENCE + 1.5
REACHING = ("open", "mkdir", "stat", "lstat", "unlink", "rmdir", "listdir")


class Disk:
    """The disk below a folder; between ``stall`` and ``move`` no call that names a path there returns."""

    def __init__(self, root, monkeypatch):
        self._root = str(root)
        self._moving = threading.Event()
        self._moving.set()
        self._real = {name: getattr(os, name) for name in REACHING}
        for name in REACHING:
            monkeypatch.setattr(os, name, self._waiting(name))
        # What was bound before.
        monkeypatch.setattr(descriptors, "_open", self._waiting("open"))
        self.asked = []

    def stall(self):
        self._moving.clear()

    def move(self):
        self._moving.set()

    def _waiting(self, name):
        real = self._real[name]

        def call(path=".", *args, **options):
            if not self._moving.is_set() and self._is_below(path, options.get("dir_fd")):
                self.asked.append(name)
                self._moving.wait(60)
            return real(path, *args, **options)

        return call

    def _is_below(self, path, folder):
        if isinstance(path, int):
            folder, path = path, ""
        place = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        return os.path.join(place, os.fspath(path)).startswith(self._root)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr(stalled_disk, "STALL_SECONDS", PATIENCE)
    monkeypatch.setattr(stalled_disk, "LAST_LOOK_SECONDS", LAST_LOOK)
    monkeypatch.setattr(stalled_disk, "_standing", [])
    monkeypatch.setattr(Writer.__init__, "__defaults__", (*Writer.__init__.__defaults__[:-1], PATIENCE))
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.move()


def in_time(action, seconds=ONCE):
    """Do it on a thread of its own; return what came of it and the seconds that it took."""
    done = []
    since = time.monotonic()
    thread = threading.Thread(target=lambda: done.append((action(), time.monotonic() - since)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert done, f"still waiting after {seconds} s"
    return done[0]


def train(folder, *steps, alone=True):
    """Write a run from its beginning to its end."""
    run = started(folder, alone=alone)
    save(run, *steps)
    run.close(end_marker=True)
    return run


@pytest.mark.parametrize("alone", [True, False])
def test_a_run_that_never_gets_its_folder_waits_once(tmp_path, disk, capsys, alone):
    disk.stall()
    run, seconds = in_time(lambda: train(tmp_path / "run", *range(5), alone=alone))
    assert seconds > PATIENCE
    assert disk.asked
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "does not answer" in line] == [
        f"smd_agent: {tmp_path / 'run'} does not answer: nothing is saved until it does"
    ]
    assert said[-1].endswith("takes no more data: the last steps may be missing")
    assert run.saved.steps == 0


def test_a_folder_that_is_made_late_has_all_that_waited_for_it(tmp_path, disk, capsys):
    run = RunWriter(str(tmp_path / "run"))
    disk.stall()
    assert in_time(lambda: run.start("worker_0", alone=True))[0] is None
    run.write_collections(COLLECTIONS)
    save(run, 0, 1)
    disk.move()
    assert run.flush()
    save(run, 2)
    run.close(end_marker=True)
    assert readable(tmp_path / "run") == [0, 1, 2]
    assert run.steps_lost == 0
    assert not (tmp_path / "run/claim.smd").exists()
    assert f"{tmp_path / 'run'} answers again: saving goes on in it" in capsys.readouterr().err


def test_a_run_that_was_there_is_seen_when_the_disk_moves_again(tmp_path, disk, capsys):
    train(tmp_path / "run", 7)
    disk.stall()
    run = in_time(lambda: RunWriter(str(tmp_path / "run")))[0]
    assert in_time(lambda: run.start("worker_0", alone=True))[0] is None
    run.write_collections(COLLECTIONS)
    save(run, 0)
    disk.move()
    assert run.flush()
    run.close(end_marker=True)
    assert readable(tmp_path / "run") == [7]
    assert readable(tmp_path / "run-2") == [0]
    assert f"saving goes on in {tmp_path / 'run-2'}" in capsys.readouterr().err


def test_another_worker_s_place_that_is_found_late_is_left_to_it(tmp_path, disk, capsys):
    first = RunWriter(str(tmp_path / "run"))
    assert first.start("worker_1", alone=False) is None
    save(first, 0)
    assert first.flush()
    second = RunWriter(str(tmp_path / "run"))
    disk.stall()
    assert in_time(lambda: second.start("worker_1", alone=False))[0] is None
    save(second, 1)
    disk.move()
    second.close(end_marker=True)
    assert second.root == tmp_path / "run-2"
    assert "this process is writing to" in capsys.readouterr().err
    first.close(end_marker=False)
    assert [path.name for path in (tmp_path / "run").rglob("*worker_1.json")] == ["000000000000_worker_1.json"]


def test_the_end_of_a_run_that_is_stuck_waits_no_second_time(tmp_path, disk):
    run = RunWriter(str(tmp_path / "run"))
    disk.stall()
    in_time(lambda: run.start("worker_0", alone=True))
    save(run, 0)
    for end_marker in (False, True):
        assert in_time(lambda end_marker=end_marker: run.close(end_marker))[1] < PATIENCE


def test_who_takes_no_last_look_does_not_wait_until_it_has_moved(tmp_path, disk):
    run = RunWriter(str(tmp_path / "run"))
    run.start("worker_0", alone=True)
    disk.stall()
    save(run, 0)
    assert in_time(lambda: run.flush(last_look=False))[0] is False
    taken = in_time(lambda: [run.flush(last_look=False) for _ in range(1000)])[1]
    assert taken < LAST_LOOK
    disk.move()
    assert run.flush()
    save(run, 1)
    assert run.flush(last_look=False)
    assert readable(run.root) == [0, 1]


def test_a_claim_is_given_up_by_the_thread_that_writes(tmp_path, disk):
    run = RunWriter(str(tmp_path / "run"))
    run.start("worker_0", alone=True)
    save(run, 0)
    assert run.flush()
    disk.stall()
    in_time(lambda: run.close(end_marker=True))
    disk.move()
    # Having waited in vain, it waits for a moment only.
    assert any(run._writer.drain() for _ in range(100))
    assert (tmp_path / "run/training_job_end.ts").exists()
    assert not (tmp_path / "run/claim.smd").exists()


def test_what_is_killed_while_it_waits_leaves_a_folder_that_can_be_used(tmp_path, disk):
    waiting = os.pipe()
    pid = os.fork()
    if pid == 0:
        flock = __import__("fcntl").flock
        __import__("fcntl").flock = lambda *args: (os.write(waiting[1], b"x"), time.sleep(60), flock(*args))
        try:
            RunWriter(str(tmp_path / "run")).start("worker_0", alone=True)
        finally:
            os._exit(1)
    os.read(waiting[0], 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert (tmp_path / "run/claim.smd").exists()
    assert train(tmp_path / "run", 0).root == tmp_path / "run"
    assert readable(tmp_path / "run") == [0]


def test_a_child_that_is_forked_while_the_claim_waits_for_its_lock_does_not_keep_it(tmp_path, disk, monkeypatch):
    import fcntl

    reached, moving, begun, end = threading.Event(), threading.Event(), os.pipe(), os.pipe()
    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda *args: (reached.set(), moving.wait(60), flock(*args))[-1])
    run = RunWriter(str(tmp_path / "run"))
    in_time(lambda: run.start("worker_0", alone=True))
    assert reached.is_set()
    pid = os.fork()
    if pid == 0:
        os.write(begun[1], b"x")
        os.close(end[1])
        os.read(end[0], 1)
        os._exit(0)
    os.read(begun[0], 1)
    moving.set()
    assert run.flush()
    run._at.folder._claim.drop()
    assert RunWriter(str(tmp_path / "run")).start("worker_0", alone=True) is None
    other = RunWriter(str(tmp_path / "other"))
    assert other.start("worker_0", alone=True) is None
    os.close(end[1])
    os.waitpid(pid, 0)
    assert not (tmp_path / "run-2").exists()


def test_a_child_that_is_forked_while_the_disk_stands_still_comes_back(tmp_path, disk):
    run = RunWriter(str(tmp_path / "run"))
    disk.stall()
    in_time(lambda: run.start("worker_0", alone=True))
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        run.begin_anew()
        os._exit(0 if run.start("worker_0", alone=True) is None else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_hook_is_made_while_the_disk_stands_still(tmp_path, disk):
    disk.stall()
    _, first = in_time(lambda: refuse_finished_run(str(tmp_path / "run")))
    hook, second = in_time(lambda: FrameworkHook(str(tmp_path / "run")))
    session.forget()
    assert isinstance(hook, BaseHook)
    assert first > PATIENCE > second


def test_a_hook_file_on_a_disk_that_stands_still_is_told(tmp_path, disk):
    path = tmp_path / "hook.json"
    path.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    disk.stall()
    for seconds in (ONCE, PATIENCE):
        with pytest.raises(ConfigError, match=r"hook\.json cannot be read: it does not answer"):
            in_time_or_raise(lambda: read_settings(str(path)), seconds)
    disk.move()
    assert read_settings(str(path)).out_dir == str(tmp_path / "run")


def in_time_or_raise(action, seconds):
    def attempt():
        try:
            return action(), None
        except Exception as error:
            return None, error

    (result, error), _ = in_time(attempt, seconds)
    if error is not None:
        raise error
    return result


def test_no_thread_stays_that_has_looked_at_a_disk_that_moves(tmp_path):
    # Those of other tests may end meanwhile.
    before = {*threading.enumerate()}
    RunWriter(str(tmp_path / "run"))
    refuse_finished_run(str(tmp_path))
    assert stalled_disk.in_time(lambda: Path("x").name) == "x"
    assert {*threading.enumerate()} <= before
