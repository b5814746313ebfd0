"""A run on its way into a store that speaks S3: what comes there, in which order, and what a bad store costs."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("moto")

import fsspec
from harness.store_server import contents, files, store_server, stored
from harness.written_runs import COLLECTIONS, readable, save, saved

from smd_agent import create_trial, guard
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats import paths
from smd_agent.storage import series_writer, store_session, store_thread, uploads
from smd_agent.storage.destination import Destination


@pytest.fixture(scope="module")
def server():
    with store_server() as running:
        yield running


@pytest.fixture
def store(server, monkeypatch, tmp_path):
    """The store without faults; what goes there lies in ``tmp_path / "way"`` before."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "way"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "way").mkdir()
    guard.lines.said.clear()
    server.heal()
    yield server
    server.heal()


@pytest.fixture
def address(request):
    return f"s3://bucket/{request.node.name}/run"


def end(run):
    run.close(True)
    run.clear_away()


def below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(store) -> list[str]:
    """What was uploaded, in order, by its name below the run."""
    return [what.partition("/run/")[2] for what in store.faults.seen if what.startswith("PUT ")]


def said(capfd) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "werkzeug" not in line]


def test_the_series_comes_to_the_store_while_the_run_goes_on_and_at_its_end(store, address, tmp_path, monkeypatch):
    monkeypatch.setattr(series_writer, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(series_writer, "UPLOAD_SECONDS", 0.0)
    run = stored(address)
    save(run, 0)

    def rows(*steps):
        for step in steps:
            run.series.add("steps", step, ModeKeys.TRAIN, step, ("series/loss",), (float(step),))
            time.sleep(0.005)

    def there():
        table = create_trial(address, timeout=0).series().get("steps")
        return [] if table is None else table["series/loss"].tolist()

    limit = time.monotonic() + 20
    while not there():
        assert time.monotonic() < limit
        rows(0, 1, 2)
    rows(*range(3, 20))
    end(run)
    assert there() == [float(step) for step in range(20)]
    trial = create_trial(address)
    assert trial.tensor("series/loss").value(7) == 7


def test_what_is_in_the_store_is_what_is_in_the_folder(store, address, tmp_path):
    run = stored(str(tmp_path / "run"), upload_to=address)
    assert run.location == str(tmp_path / "run")
    save(run, *range(10))
    run.write_about({"machine": {"cores": "2"}}, None)
    run.close(True)
    assert run.summary().endswith(f"; it is in {address}, too; to see them: python -m smd_agent ls {tmp_path / 'run'}")
    run.clear_away()
    there = contents(address)
    assert there == below(tmp_path / "run")
    assert len(there) == 23
    assert readable(tmp_path / "run") == [*range(10)]


def test_an_index_comes_after_its_event_file_and_the_end_marker_last(store, address):
    store.faults.refuse, store.faults.drop = 2, 2
    run = stored(address)
    store.faults.only, store.faults.refuse, store.faults.drop = "PUT", 5, 5
    save(run, *range(10))
    end(run)
    assert (store.faults.refuse, store.faults.drop) == (0, 0)
    order = put(store)
    for step in range(10):
        assert order.index(paths.event_path(step, "worker_0")) < order.index(paths.index_path(step, "worker_0"))
    assert order[0] == "claim.smd"
    assert order.index(paths.collections_path("worker_0")) < order.index(paths.index_path(0, "worker_0"))
    assert order[-1] == paths.END_MARKER
    assert "claim.smd" not in contents(address)


def test_no_index_comes_before_the_collections(store, address):
    run = stored(address)
    store.faults.only, store.faults.refuse = "_collections.json", 3
    save(run, *range(3))
    end(run)
    assert store.faults.refuse == 0
    order = put(store)
    assert order.index(paths.collections_path("worker_0")) < order.index(paths.index_path(0, "worker_0"))


def test_nothing_is_left_here_of_a_run_that_a_store_has(store, address, tmp_path):
    run = stored(address)
    save(run, 0)
    assert run.location == address
    assert os.listdir(tmp_path / "way")
    assert Path(run.folder).parent.stat().st_mode & 0o777 == 0o700
    end(run)
    assert os.listdir(tmp_path / "way") == []


def test_findings_are_taken_until_the_store_is_waited_for_no_more(store, address, tmp_path):
    run = stored(address)
    save(run, 0)
    found = run.root / "findings.json"
    found.write_text("1")
    run._at.store.add_late(run.root, found.name)
    run.close(True)
    found.write_text("2")
    run._at.store.add_late(run.root, found.name)
    run.clear_away()
    assert contents(address)[found.name] == b"1"
    assert os.listdir(tmp_path / "way") == []


def test_a_large_file_is_uploaded_in_parts(store, address, tmp_path):
    run = stored(str(tmp_path / "run"), upload_to=address)
    step = run.begin_step(0, ModeKeys.TRAIN, 0)
    step.add("x", np.random.default_rng(0).normal(size=(5 << 20) // 2))
    run.commit(step)
    end(run)
    parts = [what for what in store.faults.seen if "partNumber=" in what]
    assert len(parts) == 3
    assert contents(address) == below(tmp_path / "run")


def test_a_place_that_holds_a_run_is_left_alone(store, address, capfd):
    for _ in range(2):
        run = stored(address)
        save(run, 1)
        end(run)
    first = contents(address)
    assert (run.location, run.relocated_because) == (f"{address}-2", f"{address} holds a finished run")
    going_on = stored(f"{address}-3")
    saved(going_on, 5)
    third = stored(address)
    assert third.location == f"{address}-4"
    for run in (third, going_on):
        end(run)
    assert contents(address) == first
    assert [name for name in contents(f"{address}-4") if name.startswith("index")] == []
    with pytest.raises(SMDebugRuntimeError, match="-2 already exists and holds a finished run"):
        Destination.of(f"{address}-2", None, 1.0).refuse_finished_run()


def test_of_two_programs_that_start_at_once_one_gets_the_place(store, address, monkeypatch):
    # Both have looked before either has written.
    monkeypatch.setattr(store_session, "held_at", lambda place: "")
    runs = [stored(address) for _ in range(2)]
    assert [run.location for run in runs] == [address, f"{address}-2"]
    for run in runs:
        end(run)


def test_workers_share_a_place_and_what_each_left_goes(store, address):
    cut_off = stored(address, worker="worker_1", alone=False)
    save(cut_off, 7, 8)
    cut_off.leave()
    cut_off.close(False)
    cut_off._at.store.finish()
    cut_off.clear_away()
    runs = [stored(address, worker=f"worker_{rank}", alone=False) for rank in (0, 1)]
    assert {paths.claim_path("worker_0"), paths.claim_path("worker_1")} <= contents(address).keys()
    for run in runs:
        save(run, 0, 1)
    runs[1].close(False)
    end(runs[0])
    runs[1].clear_away()
    names = contents(address).keys()
    assert {name for name in names if name.startswith("index")} == {
        paths.index_path(step, f"worker_{rank}") for step in (0, 1) for rank in (0, 1)
    }
    assert paths.event_path(7, "worker_1") not in names
    assert not any("claim" in name for name in names)
    place = Destination.of(address, None, 1.0)
    assert place.uploads.finished_before


def test_a_store_that_never_answers_costs_a_moment_at_the_end(store, address, capfd, tmp_path):
    run = stored(address, patience=1.0)
    saved(run, 0)
    store.faults.only, store.faults.hangs = "PUT", True
    begun = time.monotonic()
    saved(run, *range(1, 200))
    # Each would be waited for.
    assert time.monotonic() - begun < 60.0
    begun = time.monotonic()
    end(run)
    assert time.monotonic() - begun < 5.0
    folder = run.folder
    (line,) = said(capfd)
    assert line.startswith("smd_agent: ")
    assert line.endswith(f" of the run are not in {address} (it does not answer in time), but in {folder}")
    assert readable(Path(folder)) == [*range(200)]
    assert run.location == folder
    store.heal()
    assert paths.END_MARKER not in contents(address)


def test_a_store_that_fails_for_long_is_told_of_once_and_gets_all_in_the_end(store, address, capfd, monkeypatch):
    monkeypatch.setattr(store_thread, "STANDS_STILL", 0.5)
    monkeypatch.setattr(store_thread, "LONGEST_PAUSE", 0.3)
    run = stored(address)
    store.faults.only, store.faults.refuse = "PUT", 10**6
    save(run, *range(3))
    limit = time.monotonic() + 20
    lines = []
    while not lines and time.monotonic() < limit:
        time.sleep(0.1)
        lines = said(capfd)
    assert len(lines) == 1
    assert lines[0].startswith(f"smd_agent: {address} takes nothing (")
    assert f"the run goes on, what is saved waits in {run.folder}" in lines[0]
    store.heal()
    save(run, 3)
    end(run)
    assert said(capfd) == []
    assert [name for name in contents(address) if name.startswith("index")] == [
        paths.index_path(step, "worker_0") for step in range(4)
    ]


def test_the_random_numbers_of_the_program_are_its_own(store, address):
    random.seed(5)
    expected = random.Random(5).random()
    store.faults.only, store.faults.refuse, store.faults.drop = "PUT", 2, 2
    run = stored(address)
    save(run, *range(10))
    end(run)
    assert random.random() == expected


def test_what_lies_here_on_its_way_is_bounded(store, address, monkeypatch, capfd):
    monkeypatch.setattr(store_thread, "KEPT_BYTES", 1000)
    run = stored(address)
    save(run, *range(20))
    run.close(True)
    assert run.folder is None
    left = list(run.root.rglob("*.tfevents"))
    assert 0 < len(left) < 8
    run.clear_away()
    assert len([name for name in contents(address) if name.endswith("tfevents")]) == 20


def test_what_waits_for_the_store_is_bounded(store, address, monkeypatch, capfd):
    monkeypatch.setattr(uploads, "WAITING_BYTES", 2000)
    run = stored(address)
    store.faults.only, store.faults.hangs = "PUT", True
    saved(run, *range(20))
    assert 0 < run.steps_lost < 20
    (line,) = said(capfd)
    assert f"too much of the run waits to be taken by {address}" in line
    store.heal()
    end(run)
    assert len(contents(address)) == 2 * (20 - run.steps_lost) + 3


@pytest.mark.parametrize(
    "place, broken, reason",
    [
        ("s3://no-such-bucket/run", "", "The specified bucket does not exist"),
        ("s3://bucket/run", "credentials", "Unable to locate credentials"),
        ("s3://bucket/run", "fsspec", "what reads and writes s3:// is not installed: pip install 'smd-agent[stores]'"),
        ("s3://bucket/run", "s3fs", "what reads and writes s3:// is not installed: pip install 'smd-agent[stores]'"),
        ("gs://bucket/run", "gcsfs", "Please install gcsfs to access Google Storage"),
        ("nowhere://bucket/run", "", "Protocol not known: nowhere"),
    ],
)
def test_a_store_that_cannot_be_used_is_named_in_one_line(store, place, broken, reason, monkeypatch, capfd, tmp_path):
    if broken == "credentials":
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path))
    elif broken:
        monkeypatch.setitem(sys.modules, broken, None)
        for protocol in ("s3", "gs"):
            # What has been imported for an earlier test.
            monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    instead = tmp_path / "smd_runs" / "run"
    run = stored(place)
    assert said(capfd) == [f"smd_agent: {place} is not used ({reason}): the run goes into {instead}"]
    saved(run, 4)
    assert run.location == str(instead)
    end(run)
    assert readable(instead) == [4]
    stored(str(tmp_path / "here"), upload_to=place).close(True)
    guard.lines.said.clear()
    stored(str(tmp_path / "there"), upload_to=place).close(True)
    assert said(capfd) == [f"smd_agent: {place} is not used ({reason}): the run stays in {tmp_path / 'there'}"]


def test_a_store_that_hangs_from_the_start_is_waited_for_once(store, address, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr("smd_agent.stalled_disk.STALL_SECONDS", 1.0)
    monkeypatch.setattr("smd_agent.stalled_disk._standing", [])
    store.faults.hangs = True
    begun = time.monotonic()
    run = stored(address)
    saved(run, 1)
    end(run)
    assert time.monotonic() - begun < 8.0
    instead = tmp_path / "smd_runs" / "run"
    expected = f"smd_agent: {address} is not used (it does not answer in time): the run goes into {instead}"
    assert said(capfd) == [expected]
    assert readable(instead) == [1]


def test_a_thread_that_has_failed_is_not_waited_for(store, monkeypatch, capfd, tmp_path):
    monkeypatch.setattr(store_thread, "new_loop", lambda: [].broken)
    begun = time.monotonic()
    run = stored("memory://runs/failed")
    reason = "'list' object has no attribute 'broken'"
    expected = f"smd_agent: memory://runs/failed is not used ({reason}): the run goes into {tmp_path}/smd_runs/failed"
    assert said(capfd) == [expected]
    save(run, 1)
    end(run)
    assert time.monotonic() - begun < 10.0
    assert readable(tmp_path / "smd_runs" / "failed") == [1]


def test_what_a_thread_that_fails_later_has_not_uploaded_is_told_with_the_reason(store, monkeypatch, capfd):
    run = stored("memory://runs/failed")
    monkeypatch.setattr(uploads.Uploads, "_settle", lambda *rest: [].broken)
    begun = time.monotonic()
    save(run, 1, 2)
    end(run)
    assert time.monotonic() - begun < 10.0
    (line,) = said(capfd)
    told = f"memory://runs/failed ('list' object has no attribute 'broken'), but in {run.folder}"
    assert line.endswith(f" of the run are not in {told}")
    assert readable(Path(run.folder)) == [1, 2]


def test_a_claim_that_cannot_be_removed_keeps_nothing_here(store, monkeypatch, capfd, tmp_path):
    memory = fsspec.filesystem("memory")
    run = stored("memory://runs/claimed")
    save(run, 1)

    real = type(memory).rm_file

    def refuse(self, path):
        if path.endswith(paths.claim_path()):
            raise PermissionError(13, "Permission denied")
        real(self, path)

    monkeypatch.setattr(type(memory), "rm_file", refuse)
    end(run)
    assert run.location == "memory://runs/claimed"
    assert os.listdir(tmp_path / "way") == []
    assert said(capfd) == []
    assert memory.exists(f"/runs/claimed/{paths.END_MARKER}")


def test_a_server_that_has_parts_of_files_never_shows_one(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    memory = fsspec.filesystem("memory")
    seen = []
    real = type(memory).put_file
    monkeypatch.setattr(type(memory), "put_file", lambda self, *args: (seen.append(args[1]), real(self, *args)))
    run = stored("memory://runs/first")
    saved(run, 0, 1)
    end(run)
    names = [path.partition("/runs/first/")[2] for path in memory.find("/runs/first")]
    assert names == [
        paths.collections_path("worker_0"),
        *(paths.event_path(step, "worker_0") for step in (0, 1)),
        *(paths.index_path(step, "worker_0") for step in (0, 1)),
        paths.END_MARKER,
    ]
    assert seen
    assert all(place.endswith(".tmp") for place in seen)
    assert said(capfd) == []
    memory.rm("/runs", recursive=True)


def test_a_file_that_changes_while_it_is_uploaded_is_uploaded_again(store, address, tmp_path):
    store.faults.only, store.faults.seconds = paths.collections_path("worker_0"), 0.5
    run = stored(str(tmp_path / "run"), upload_to=address)
    assert run.flush()
    time.sleep(0.2)
    newer = COLLECTIONS.replace("{}", '{"mine": {}}', 1)
    run.write_collections(newer)
    end(run)
    assert contents(address)[paths.collections_path("worker_0")].decode() == newer
    assert files().exists(f"{address}/{paths.END_MARKER}")


def test_beside_a_run_in_a_bucket_itself_there_is_another_below(store):
    files().mkdir("whole")
    for expected in ("s3://whole", "s3://whole/run-2"):
        run = stored("s3://whole")
        assert run.location == expected
        save(run, 1)
        end(run)
    assert paths.END_MARKER in contents("s3://whole")
