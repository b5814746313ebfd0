"""The series where the disk, the folder, the process or the run is not as it was a moment ago."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from harness.written_runs import COLLECTIONS, save, saved, started

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.storage import local_disks, series_file, series_writer
from smd_agent.storage.folder_choice import Continuation
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.series_writer import SeriesWriter

NAMES = ("series/loss", "series/learning_rate")


def rows(run, *steps, loss=float):
    for step in steps:
        run.series.add("steps", step, ModeKeys.TRAIN, step, NAMES, (loss(step), 0.1))


def losses(folder):
    table = create_trial(str(folder), timeout=0).series().get("steps")
    return {} if table is None else dict(zip(table.steps.tolist(), table["series/loss"].tolist(), strict=True))


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def until_written(run, *steps):
    """Add rows, and have them and their file on disk."""
    rows(run, *steps)
    assert run.flush()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def run(folder):
    run = started(folder)
    saved(run, 0)
    yield run
    run.close(end_marker=False)


@pytest.fixture
def looked_at_often(monkeypatch):
    monkeypatch.setattr(series_writer, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(series_file, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(series_writer, "RETRY_SECONDS", 0.05)


class FullDisk:
    """A disk that takes no more bytes at some places, or a part of what it is given."""

    def __init__(self, monkeypatch):
        self.full = False
        self.part = 0
        self._pwrite = os.pwrite
        monkeypatch.setattr(os, "pwrite", self._write)

    def _write(self, descriptor, data, place):
        if not self.full:
            return self._pwrite(descriptor, data, place)
        if self.part:
            return self._pwrite(descriptor, bytes(data)[: self.part], place)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("part", [0, 10, 47])
def test_rows_wait_for_a_disk_that_is_full(run, folder, monkeypatch, looked_at_often, capfd, part):
    disk = FullDisk(monkeypatch)
    until_written(run, 0, 1)
    disk.full, disk.part = True, part
    for step in range(2, 20):
        rows(run, step)
        time.sleep(0.005)
    assert losses(folder) == {0: 0, 1: 1}
    disk.full = False
    time.sleep(0.1)
    until_written(run, 20)
    assert losses(folder) == {step: step for step in range(21)}
    assert capfd.readouterr().err.count("No space left on device") == 1


def test_a_row_that_a_full_disk_refuses_comes_with_a_later_one(run, folder, monkeypatch):
    until_written(run, 0, 1)
    FullDisk(monkeypatch).full = True
    rows(run, 2)
    monkeypatch.undo()
    until_written(run, 3)
    assert [*losses(folder)] == [0, 1, 2, 3]


def test_of_rows_that_wait_too_long_the_older_ones_are_dropped(run, folder, monkeypatch, looked_at_often, capfd):
    monkeypatch.setattr(series_file, "MOST_WAITING", 4800)
    disk = FullDisk(monkeypatch)
    until_written(run, 0)
    disk.full = True
    for step in range(1, 1000):
        rows(run, step)
        if not step % 50:
            time.sleep(0.003)
    disk.full = False
    time.sleep(0.1)
    until_written(run, 1000)
    found = [*losses(folder)]
    assert found[0] == 0
    assert found[1:] == [*range(1001 - len(found[1:]), 1001)]
    assert 20 < len(found) < 200
    assert capfd.readouterr().err.count("rows of the series are missing") == 1


def test_a_disk_that_is_slow_is_left_to_the_writer_thread(run, folder, monkeypatch):
    writers = []
    pwrite = os.pwrite

    def slow(*args):
        writers.append(threading.current_thread())
        time.sleep(0.01)
        return pwrite(*args)

    until_written(run, 0)
    monkeypatch.setattr(os, "pwrite", slow)
    took = []
    for step in range(1, 60):
        time.sleep(0.003)
        begun = time.perf_counter()
        rows(run, step)
        took.append(time.perf_counter() - begun)
    assert 4 <= writers.count(threading.main_thread()) <= 6
    assert sorted(took)[-10] < 0.009
    run.close(end_marker=True)
    assert losses(folder) == {step: step for step in range(60)}


@pytest.mark.parametrize("pauses, is_left", [([0.06], False), ([0.06] * 3, True), ([0.6], True)])
def test_a_disk_is_slow_by_several_writes_or_where_it_has_stood_still(run, folder, monkeypatch, pauses, is_left):
    """One write may have waited for a busy machine."""
    until_written(run, 0)
    pwrite, left = os.pwrite, [*pauses]

    def write(*args):
        time.sleep(left.pop() if left else 0.0)
        return pwrite(*args)

    monkeypatch.setattr(os, "pwrite", write)
    rows(run, *range(1, 1 + len(pauses)))
    busy = threading.Event()
    run._writer.submit(lambda: busy.wait(30))
    rows(run, 10)
    assert (10 not in losses(folder)) is is_left
    busy.set()


def add_further(run, step):
    """Add a row of one number more, which another file begins with."""
    run.series.add("steps", step, ModeKeys.TRAIN, step, (*NAMES, "series/further"), (float(step), 0.1, 1.0))


def test_rows_do_not_wait_behind_the_saving_of_steps(run, folder):
    """Not even those that a file begins with."""
    busy = threading.Event()
    run._writer.submit(lambda: busy.wait(30))
    rows(run, 0, 1)
    assert losses(folder) == {0: 0.0, 1: 1.0}
    add_further(run, 2)
    assert losses(folder) == {0: 0.0, 1: 1.0, 2: 2.0}
    busy.set()


def test_of_a_disk_that_is_not_known_to_be_quick_the_writer_thread_makes_the_file(run, folder):
    """Once it has made it, it is asked no more, however much it has to do."""
    run.series._place = None
    first, second = threading.Event(), threading.Event()
    run._writer.submit(lambda: first.wait(30))
    rows(run, 0)
    run._writer.submit(lambda: second.wait(30))
    rows(run, 1)
    assert losses(folder) == {}
    first.set()
    wait_for(lambda: 1 in losses(folder))
    rows(run, 2)
    assert losses(folder) == {0: 0.0, 1: 1.0, 2: 2.0}
    second.set()


@pytest.mark.parametrize("go", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("moved"))])
def test_a_file_that_cannot_be_made_where_the_run_was_is_made_where_it_goes_on(run, folder, go, capfd):
    until_written(run, 0, 1)
    go(folder)
    add_further(run, 2)
    save(run, 2)
    until_written(run, 3)
    run.close(end_marker=True)
    assert {2, 3} <= losses(folder).keys()
    assert "No such file" not in capfd.readouterr().err


def test_a_row_of_a_short_step_is_written_at_once(run, folder):
    until_written(run, 0)
    for step in range(1, 200):
        rows(run, step)
        if not step % 50:
            assert max(losses(folder)) == step


def test_a_disk_that_stands_still_stops_nobody(run, folder, monkeypatch):
    monkeypatch.setattr(series_writer, "is_local", lambda root: False)
    run.series.enter(run.root)
    moving = threading.Event()
    pwrite = os.pwrite

    def waiting(*args):
        moving.wait(30)
        return pwrite(*args)

    monkeypatch.setattr(os, "pwrite", waiting)
    begun = time.monotonic()
    for step in range(50_000):
        rows(run, step)
    assert time.monotonic() - begun < 10
    moving.set()
    run.close(end_marker=True)
    found = [*losses(folder)]
    assert found[-1] == 49_999
    assert len(found) > 5_000


def test_rows_go_into_another_file_where_theirs_was_removed(run, folder, looked_at_often):
    until_written(run, 0, 1)
    shutil.rmtree(folder / "series")
    rows(run, 2)
    until_written(run, 3)
    assert losses(folder) == {2: 2, 3: 3}


@pytest.mark.parametrize("go", [shutil.rmtree, lambda folder: folder.rename(folder.with_name("moved"))])
def test_rows_go_on_where_the_run_goes_on(run, folder, looked_at_often, go):
    until_written(run, 0, 1)
    go(folder)
    for step in range(2, 100):
        rows(run, step)
        time.sleep(0.003)
    save(run, 100)
    until_written(run, 100)
    run.close(end_marker=True)
    found = losses(folder)
    assert {50, 99, 100} <= found.keys()
    assert min(found) > 1


def test_a_descriptor_that_is_no_longer_ours_is_left_alone(run, folder, tmp_path, looked_at_often):
    until_written(run, 0)
    (own,) = run.series._files()
    number = own._descriptor
    os.close(number)
    theirs = os.open(tmp_path / "theirs", os.O_RDWR | os.O_CREAT)
    os.dup2(theirs, number)
    try:
        for step in range(1, 20):
            rows(run, step)
            time.sleep(0.003)
        run.close(end_marker=True)
        assert os.fstat(number).st_size == 0
    finally:
        os.close(number)
        os.close(theirs)
    assert {0, 19} <= losses(folder).keys()


@pytest.mark.parametrize(
    "mounts, folder, local",
    [
        (b"/dev/a / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\n", "/data/run", False),
        (b"/dev/a / ext4 rw 0 0\nserver:/x /data nfs4 rw 0 0\n", "/database/run", True),
        (b"x / overlay rw 0 0\ny /a\\040b fuse.sshfs rw 0 0\nz /a\\040b/c xfs rw 0 0\n", "/a b/run", False),
        (b"x / overlay rw 0 0\ny /a\\040b fuse.sshfs rw 0 0\nz /a\\040b/c xfs rw 0 0\n", "/a b/c/run", True),
        (b"", "/run", False),
    ],
    ids=["server", "other name", "escaped", "below it", "nothing known"],
)
def test_the_kind_of_a_disk_is_that_of_the_innermost_mount(tmp_path, monkeypatch, mounts, folder, local):
    (tmp_path / "mounts").write_bytes(mounts)
    monkeypatch.setattr(local_disks, "_MOUNTS", str(tmp_path / "mounts"))
    assert local_disks.is_local(Path(folder)) is local


def test_descriptors_are_high():
    assert series_file._raised(os.open(os.devnull, os.O_RDONLY)) >= 512


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_writes_nothing_into_its_parents_files(run, folder):
    until_written(run, 0)
    rows(run, 1)
    child = os.fork()
    if not child:
        code = 1
        try:
            (own,) = run.series._files()
            assert not own.is_open
            run.begin_anew()
            rows(run, 2)
            assert run.start("worker_0", alone=True) is None
            run.write_collections(COLLECTIONS)
            save(run, 2)
            run.close(end_marker=False)
            code = 0 if losses(run.root) == {2: 2.0} and run.root != folder else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    until_written(run, 3)
    assert losses(folder) == {0: 0, 1: 1, 3: 3}


def test_two_runs_in_one_process_have_their_own_rows(tmp_path):
    runs = [started(tmp_path / name) for name in "ab"]
    for step in range(100):
        for number, run in enumerate(runs):
            rows(run, step, loss=lambda step, number=number: step + number / 2)
    for run in runs:
        run.close(end_marker=True)
    assert losses(tmp_path / "a") == {step: step for step in range(100)}
    assert losses(tmp_path / "b") == {step: step + 0.5 for step in range(100)}


def test_threads_may_add_rows_at_once(run, folder):
    threads = [threading.Thread(target=rows, args=(run, *range(first, 4000, 4))) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close(end_marker=True)
    assert losses(folder) == {step: step for step in range(4000)}


def test_workers_have_their_own_rows(folder):
    first, second = (RunWriter(str(folder)) for _ in range(2))
    for number, run in enumerate((first, second)):
        assert run.start(f"worker_{number}", alone=False) is None
        run.write_collections('{"collections": {}, "_meta": {"num_workers": 2}}')
        save(run, 0)
    for step in range(10):
        rows(first, step)
        rows(second, step, loss=lambda step: -float(step))
    second.close(end_marker=False)
    first.close(end_marker=True)
    trial = create_trial(str(folder))
    tensor = trial.tensor("series/loss")
    assert tensor.workers(3) == ["worker_0", "worker_1"]
    assert tensor.value(3, worker="worker_1") == -3
    assert tensor.values(worker="worker_1")[9] == -9
    assert trial.series("worker_1")["steps"]["series/loss"].tolist() == [-float(step) for step in range(10)]


def test_a_worker_that_gets_another_name_goes_on_under_it(folder):
    run = RunWriter(str(folder))
    rows(run, 0)
    assert run.start("worker_0", alone=False) is None
    run.write_collections(COLLECTIONS)
    save(run, 0)
    run.leave()
    rows(run, 1)
    assert run.start("worker_1", alone=False) is None
    rows(run, 2)
    run.close(end_marker=True)
    trial = create_trial(str(folder))
    assert trial.series("worker_0")["steps"].steps.tolist() == [0]
    assert trial.series("worker_1")["steps"].steps.tolist() == [1, 2]


def test_a_start_that_goes_on_makes_rows_anew(folder):
    run = started(folder)
    saved(run, 0, 10)
    until_written(run, *range(20))
    run.close(end_marker=False)
    run = started(folder, continued=Continuation(folder, 10))
    run.series.after = 10
    rows(run, *range(11, 15), loss=lambda step: step + 0.5)
    save(run, 11)
    run.close(end_marker=True)
    expected = {**{step: step for step in range(11)}, **{step: step + 0.5 for step in range(11, 15)}}
    assert losses(folder) == expected


@pytest.mark.parametrize("alone", [True, False])
def test_what_a_run_without_a_step_has_left_goes(folder, alone):
    run = started(folder, alone=alone)
    until_written(run, *range(20))
    run.leave()
    run = started(folder, alone=alone)
    until_written(run, 3)
    save(run, 3)
    run.close(end_marker=True)
    assert losses(folder) == {3: 3}


def test_rows_after_the_end_of_a_run_are_there_too(run, folder):
    until_written(run, 0)
    run.close(end_marker=True)
    rows(run, 1, 2)
    run.close(end_marker=True)
    assert losses(folder) == {0: 0, 1: 1, 2: 2}


def test_a_large_file_is_followed_by_another(run, folder, monkeypatch):
    monkeypatch.setattr(series_writer, "LARGEST_FILE", 4096)
    for step in range(1000):
        rows(run, step)
        if not step % 20:
            time.sleep(0.003)
    run.close(end_marker=True)
    assert losses(folder) == {step: step for step in range(1000)}
    sizes = [path.stat().st_size for path in (folder / "series").iterdir()]
    assert len(sizes) > 5
    assert max(sizes) < 8192


def test_a_read_only_folder_costs_rows_and_nothing_else(run, folder, monkeypatch, capfd):
    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(series_file, "create_file", refuse)
    rows(run, *range(10))
    save(run, 1)
    run.close(end_marker=True)
    assert losses(folder) == {}
    assert create_trial(str(folder)).steps() == [0, 1]
    assert "Read-only file system" in capfd.readouterr().err


def test_a_link_in_the_place_of_the_folder_is_not_followed(run, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "series").symlink_to(tmp_path / "elsewhere")
    until_written(run, 1)
    assert not any((tmp_path / "elsewhere").iterdir())


def test_a_table_is_thinned_and_never_ends(folder):
    run = started(folder, series_bytes=48_000)
    saved(run, 0)
    rows(run, *range(100_000), loss=lambda step: float("nan") if step in (70_001, 70_002) else float(step))
    run.close(end_marker=True)
    found = losses(folder)
    steps = [*found]
    assert steps[:500] == [*range(500)]
    assert len(steps) <= 1010
    assert steps[-1] > 50_000
    assert 70_001 in found
    assert 70_002 not in found
    gaps = sorted({after - before for before, after in itertools.pairwise(steps)})
    assert gaps[0] == 1
    assert gaps[-1] > 1000


def test_a_signal_handler_may_add_rows(run, folder):
    counts = iter(range(100_000, 200_000))

    def handle(*_):
        rows(run, next(counts))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        rows(run, *range(50_000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    run.close(end_marker=True)
    found = losses(folder)
    assert [step for step in found if step < 100_000] == [*range(50_000)]
    assert next(counts) - 100_000 == len([step for step in found if step >= 100_000])


def test_a_writer_needs_no_run():
    jobs = []
    writer = SeriesWriter({"steps": 1000}, series_writer.SeriesDisk(jobs.append, None, None, None))
    for step in range(100_000):
        writer.add("steps", step, ModeKeys.TRAIN, step, NAMES, (0.0, 0.0))
    assert not jobs
