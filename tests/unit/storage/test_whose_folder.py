"""Who may write into a run's folder: one process at a time, and never a second run beside the first one's steps."""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import json
import os
import signal
import socket
import time
from functools import partial
from pathlib import Path

import pytest
from harness.run_writers import COLLECTIONS, cut_off, save, start, values, workers

from smd_agent import create_trial
from smd_agent.storage.claim import Claim
from smd_agent.storage.folder_choice import Continuation, RunFolder
from smd_agent.storage.run_writer import RunWriter

GONE = {"pid": 2**22 + 1, "host": socket.gethostname(), "started": "1"}


class Contest:
    """Processes that all start to write into one folder at the same moment, and what each of them got."""

    def __init__(self, folder, processes):
        self.results = []
        go, end = os.pipe(), os.pipe()
        answers = [os.pipe() for _ in range(processes)]
        pids = [self._fork(folder, go, end, answer) for answer in answers]
        os.close(go[0])
        time.sleep(0.002)
        os.close(go[1])
        for read, write in answers:
            self.results.append(os.read(read, 4096).decode())
            os.close(read)
            os.close(write)
        os.close(end[0])
        os.close(end[1])
        for pid in pids:
            os.waitpid(pid, 0)

    @staticmethod
    def _fork(folder, go, end, answer):
        pid = os.fork()
        if pid == 0:
            try:
                os.close(go[1])
                os.close(end[1])
                writer = RunWriter(str(folder))
                os.read(go[0], 1)
                refused = writer.start("worker_0", alone=True)
                os.write(answer[1], (refused or str(writer.root)).encode())
                # The folder is held until all have answered.
                os.read(end[0], 1)
            finally:
                os._exit(0)
        return pid


@pytest.mark.parametrize("left_behind", [False, True])
def test_of_processes_that_start_together_each_has_a_folder_of_its_own(tmp_path, left_behind):
    for number in range(60):
        folder = tmp_path / f"run{number}"
        if left_behind:
            folder.mkdir()
            (folder / "claim.smd").write_text(json.dumps(GONE))
        got = Contest(folder, 3).results
        assert sorted(got) == [str(folder), f"{folder}-2", f"{folder}-3"], number


def test_a_second_run_goes_beside_the_first_and_says_why(tmp_path):
    first = start(tmp_path / "run")
    second = start(tmp_path / "run")
    assert first.root == tmp_path / "run"
    assert first.relocated_because is None
    assert second.root == tmp_path / "run-2"
    assert second.relocated_because == f"this process is writing to {tmp_path / 'run'}"
    for writer, value in ((first, 1.0), (second, 2.0)):
        save(writer, 0, value)
        writer.close(end_marker=True)
    assert values(tmp_path / "run") == [1.0]
    assert values(tmp_path / "run-2") == [2.0]


def test_a_run_that_has_ended_meanwhile_is_not_written_into(tmp_path):
    late = RunWriter(str(tmp_path / "run"))
    first = start(tmp_path / "run")
    save(first, 0, 1.0)
    first.close(end_marker=True)
    assert late.start("worker_0", alone=True) is None
    late.write_collections(COLLECTIONS)
    save(late, 1, 2.0)
    late.close(end_marker=True)
    assert values(tmp_path / "run") == [1.0]
    assert values(tmp_path / "run-2") == [2.0]
    assert "holds a finished run" in late.relocated_because


def test_what_was_cut_off_stays_as_it_is(tmp_path):
    cut_off(tmp_path / "run", steps=3, value=1.0)
    claim = (tmp_path / "run/claim.smd").read_text()
    again = start(tmp_path / "run")
    assert "was cut off" in again.relocated_because
    for step in range(2):
        save(again, step, 2.0)
    again.close(end_marker=True)
    assert values(tmp_path / "run") == [1.0, 1.0, 1.0]
    assert values(tmp_path / "run-2") == [2.0, 2.0]
    assert (tmp_path / "run/claim.smd").read_text() == claim


def test_a_run_that_was_given_up_without_an_end_mark_stays_as_it_is(tmp_path):
    first = start(tmp_path / "run")
    save(first, 0, 1.0)
    first.close(end_marker=False)
    assert start(tmp_path / "run").relocated_because == f"{tmp_path / 'run'} holds a run"


def test_a_folder_that_was_claimed_and_holds_no_step_is_used_again(tmp_path):
    cut_off(tmp_path / "run", steps=0)
    assert start(tmp_path / "run").root == tmp_path / "run"


def test_the_old_librarys_empty_claim_is_no_obstacle(tmp_path):
    (tmp_path / "claim.smd").touch()
    assert start(tmp_path).root == tmp_path


def test_another_host_name_is_no_obstacle(tmp_path):
    # As in a container that was started again.
    (tmp_path / "claim.smd").write_text(json.dumps({**GONE, "host": "elsewhere"}))
    assert start(tmp_path).root == tmp_path


def test_a_child_that_outlives_its_parent_does_not_keep_the_folder(tmp_path):
    children, end = os.pipe(), os.pipe()

    def fork(folder):
        if os.fork() == 0:
            os.write(children[1], str(os.getpid()).encode())
            os.close(end[1])
            os.read(end[0], 1)
            os._exit(0)

    cut_off(tmp_path / "run", steps=0, leave=fork)
    # It has come back from its fork.
    child = int(os.read(children[0], 20))
    os.kill(child, 0)
    assert start(tmp_path / "run").root == tmp_path / "run"
    os.close(end[1])


def test_files_that_a_killed_process_was_writing_are_removed(tmp_path):
    def leave(folder):
        for name in ("events/000000000002/2.tfevents", "index/000000000/2.json", "collections/000000000/c.json"):
            (folder / f"{name}.{os.getpid()}.tmp").write_text("half")

    cut_off(tmp_path / "run", steps=3, leave=leave)
    assert len([*(tmp_path / "run").rglob("*.tmp")]) == 3
    start(tmp_path / "run")
    assert not [*(tmp_path / "run").rglob("*.tmp")]


def test_files_that_another_host_may_be_writing_are_not_removed(tmp_path):
    def leave(folder):
        (folder / "events/000000000002/2.tfevents.7.tmp").write_text("half")
        (folder / "claim.smd").write_text(json.dumps({**GONE, "host": "elsewhere"}))

    cut_off(tmp_path / "run", steps=3, leave=leave)
    start(tmp_path / "run")
    assert [*(tmp_path / "run").rglob("*.tmp")]


@pytest.mark.parametrize("worker", [None, "worker_1"])
@pytest.mark.parametrize("step", ["owner", "sign", "_obstacle"])
def test_a_claim_that_a_failure_has_left_half_taken_is_in_nobodys_way(tmp_path, monkeypatch, step, worker):
    folder = RunFolder(tmp_path / "run", finished_before=False)
    enter = folder.enter_alone if worker is None else partial(folder.enter_as, worker)
    with monkeypatch.context() as failing:
        failing.setattr(Claim, step, lambda *_: [].missing)
        with pytest.raises(AttributeError, match="missing"):
            enter()
    enter()
    assert (folder.root, folder.reason) == (tmp_path / "run", None)
    assert folder.is_ours


@pytest.mark.parametrize("what", ["folder", "pipe", "link"])
@pytest.mark.usefixtures("impatient")
def test_a_claim_that_is_no_file_is_left_alone(tmp_path, what):
    root = tmp_path / "run"
    root.mkdir()
    claim = root / "claim.smd"
    {"folder": claim.mkdir, "pipe": lambda: os.mkfifo(claim), "link": lambda: claim.symlink_to(tmp_path / "x")}[what]()
    writer = start(root)
    assert writer.root == tmp_path / "run-2"
    assert str(claim) in writer.relocated_because
    assert not (tmp_path / "x").exists()


def test_where_only_the_named_folder_is_kept_further_runs_are_inside(tmp_path):
    start(tmp_path / "run", below=True)
    second = start(tmp_path / "run", below=True)
    assert second.root == tmp_path / "run/run-2"


def test_where_nothing_can_be_made_beside_further_runs_are_inside(tmp_path, monkeypatch):
    start(tmp_path / "run")
    mkdir = Path.mkdir

    def refuse(path, *args, **kwargs):
        if path.parent == tmp_path and not path.exists():
            raise PermissionError(errno.EACCES, "Permission denied")
        mkdir(path, *args, **kwargs)

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert start(tmp_path / "run").root == tmp_path / "run/run-2"


@pytest.fixture
def no_locks(monkeypatch):
    def flock(descriptor, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("no_locks")
def test_without_locks_the_one_that_creates_the_file_has_it(tmp_path):
    folder = tmp_path / "run"
    assert sorted(Contest(folder, 3).results) == [str(folder), f"{folder}-2", f"{folder}-3"]


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("field, other", [("machine", "another"), ("machine", None), ("host", "another")])
def test_without_locks_the_file_that_may_be_removed_is_named(tmp_path, field, other):
    cut_off(tmp_path / "run", steps=0)
    file = tmp_path / "run/claim.smd"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: other}))
    again = start(tmp_path / "run")
    assert again.root == tmp_path / "run-2"
    assert f"{file}" in again.relocated_because
    assert "remove the file if it is" in again.relocated_because


@pytest.mark.usefixtures("no_locks")
def test_without_locks_what_a_process_of_this_machine_has_left_behind_is_in_nobodys_way(tmp_path):
    cut_off(tmp_path / "run", steps=0)
    assert start(tmp_path / "run").root == tmp_path / "run"
    assert [path.name for path in (tmp_path / "run").iterdir() if path.name.endswith(".tmp")] == []
    cut_off(tmp_path / "other", steps=2)
    before = (tmp_path / "other/claim.smd").read_text()
    again = start(tmp_path / "other")
    assert again.relocated_because == f"{tmp_path / 'other'} holds a run that was cut off"
    assert (tmp_path / "other/claim.smd").read_text() == before
    goes_on = RunWriter(str(tmp_path / "other"), continued=Continuation(tmp_path / "other", 0))
    assert goes_on.start("worker_0", alone=True) is None
    assert goes_on.root == tmp_path / "other"


@pytest.mark.usefixtures("no_locks")
def test_without_locks_one_that_was_faster_keeps_its_claim(tmp_path, monkeypatch):
    cut_off(tmp_path / "run", steps=0)
    rename, faster = Path.rename, []

    def later(path, *args):
        # Both have seen that the process is gone.
        monkeypatch.setattr(Path, "rename", rename)
        faster.append(start(tmp_path / "run"))
        return rename(path, *args)

    monkeypatch.setattr(Path, "rename", later)
    slower = start(tmp_path / "run")
    assert (faster[0].root, slower.root) == (tmp_path / "run", tmp_path / "run-2")
    assert (tmp_path / "run/claim.smd").exists()
    save(faster[0], 0)
    assert faster[0].root == tmp_path / "run"


def test_going_on_after_the_end_stays_in_the_folder(tmp_path):
    writer = start(tmp_path / "run")
    save(writer, 0)
    writer.close(end_marker=True)
    save(writer, 1)
    other = start(tmp_path / "run")
    writer.close(end_marker=True)
    assert values(tmp_path / "run") == [1.0, 1.0]
    assert other.root == tmp_path / "run-2"
    assert not (tmp_path / "run/claim.smd").exists()


# Several workers, who share a folder.


def test_several_workers_share_a_folder_and_none_is_there_twice(tmp_path):
    first, second = workers(tmp_path / "run"), workers(tmp_path / "run")
    assert {writer.root for writer in first} == {tmp_path / "run"}
    assert {writer.root for writer in second} == {tmp_path / "run-2"}
    assert second[1].relocated_because == f"this process is writing to {tmp_path / 'run'}"


def test_several_workers_do_not_write_into_a_finished_run_but_into_one_whose_first_worker_has_ended(tmp_path):
    folder = tmp_path / "run"
    first, second = (RunWriter(str(folder)) for _ in range(2))
    first.start("worker_0", alone=False)
    save(first, 0)
    first.close(end_marker=True)
    assert second.start("worker_1", alone=False) is None
    assert second.root == folder
    for number in (2, 3):
        again = workers(folder)
        assert {writer.root for writer in again} == {tmp_path / f"run-{number}"}
        assert again[0].relocated_because == f"{folder} holds a finished run"
        for writer in again:
            save(writer, 0)
            # The second time, one that was killed is in the way.
            writer.close(end_marker=number == 2 and writer is again[0])


@pytest.mark.usefixtures("no_locks")
def test_several_workers_of_a_container_that_was_started_again_save_all_the_same(tmp_path, monkeypatch):
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(socket, "gethostname", lambda: "container-1")
        for writer in workers(tmp_path / "run"):
            save(writer, 0)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    again = workers(tmp_path / "run")
    assert {writer.root for writer in again} == {tmp_path / "run-2"}
    assert "on container-1 is named in" in again[0].relocated_because
    for writer in again:
        save(writer, 0, 2.0)
    monkeypatch.setattr(socket, "gethostname", lambda: "container-3")
    assert {writer.root for writer in workers(tmp_path / "run")} == {tmp_path / "run-3"}
    assert values(tmp_path / "run-2") == [2.0]


def test_a_process_that_is_alone_does_not_join_several(tmp_path):
    RunWriter(str(tmp_path / "run")).start("worker_1", alone=False)
    assert start(tmp_path / "run").root == tmp_path / "run-2"


def test_a_worker_of_several_removes_what_an_earlier_run_has_left_of_it(tmp_path, capsys):
    def run(worker, steps, value):
        pid = os.fork()
        if pid == 0:
            try:
                writer = RunWriter(str(tmp_path))
                writer.start(worker, alone=False)
                for step in steps:
                    save(writer, step, value)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    run("worker_0", range(5), 1.0)
    run("worker_1", range(2), 1.0)
    writer = RunWriter(str(tmp_path))
    writer.start("worker_0", alone=False)
    save(writer, 1, 2.0)
    left = sorted(path.name for path in tmp_path.rglob("*_worker_*.*") if path.suffix in (".json", ".tfevents"))
    steps = ["000000000000_worker_1", "000000000001_worker_0", "000000000001_worker_1"]
    assert left == sorted(f"{step}{suffix}" for step in steps for suffix in (".json", ".tfevents"))
    assert capsys.readouterr().err.count("holds steps of an unfinished run") == 1


def test_workers_that_meet_late_keep_what_they_have_saved(tmp_path):
    writer = start(tmp_path / "run")
    save(writer, 0)
    writer.leave()
    assert writer.start("worker_0", alone=False) is None
    save(writer, 1)
    writer.close(end_marker=True)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    assert trial.steps(show_incomplete_steps=True) == [0, 1]


def test_what_a_program_puts_in_the_place_of_open_is_not_called(tmp_path, monkeypatch):
    claim = Claim(tmp_path)
    with monkeypatch.context() as mocked:
        for module in (io, builtins):
            mocked.setattr(module, "open", None)
        assert claim.acquire() is None
        claim.sign()
        owner = claim.owner()
    claim.release()
    assert (owner["pid"], type(owner["started"]), type(owner["machine"])) == (os.getpid(), str, str)
