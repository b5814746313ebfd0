"""A run in a store whose training is started again: when it goes on at its address, and what is there then."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

fsspec = pytest.importorskip("fsspec")

from harness.written_runs import COLLECTIONS, readable, save, saved, started

from smd_agent import create_trial, guard
from smd_agent.formats import paths
from smd_agent.formats.training_state import StorePlace, TrainingState
from smd_agent.storage import claim, store_session, uploads
from smd_agent.storage.destination import Destination


@pytest.fixture
def store(monkeypatch, tmp_path):
    """A store; what goes there lies in ``tmp_path / "way"`` before."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "way"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "way").mkdir()
    guard.lines.said.clear()
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def address(request):
    return "memory://runs/run"


def contents(address):
    """The files below an address: names below it, and bytes."""
    files, root = fsspec.filesystem("memory"), address.removeprefix("memory:/")
    return {path[len(root) + 1 :]: files.cat_file(path) for path in files.find(root)}


@pytest.fixture(scope="module")
def gone():
    """What a claim says of a process that has ended."""
    process = subprocess.Popen(["true"])
    named = claim._identity(process.pid)
    process.wait()
    return named


def begun(address, last=None, upload_to=None, **options):
    """The writer of a run whose training may be started again; ``last`` is where it stood last."""
    place = Destination.of(address, upload_to, 10.0)
    continued = place.go_on_with(last)
    return started(Path(place.folder), uploads=place.uploads, continued=continued, **options)


def left(run, step, *, by):
    """Have a run cut off that this process has written, as if ``by`` had; where its training stood in this step."""
    assert run.flush()
    place = run.place
    limit = time.monotonic() + 10
    while run._at.store._queue.due and time.monotonic() < limit:
        time.sleep(0.02)
    run._at.store.end()
    run._at.folder._claim.drop()
    for name in [name for name in contents(place.address) if name.startswith("claim")]:
        written = json.loads(contents(place.address)[name])
        fsspec.filesystem("memory").pipe_file(f"{place.address}/{name}", json.dumps({**written, **by}).encode())
    return TrainingState(1, step, step, {}, "/gone/elsewhere", place)


def steps_at(address, worker="worker_0"):
    """The steps of a run, all of whose files are there and whose values are right."""
    trial = create_trial(address, timeout=0)
    steps = trial.tensor("x").steps(show_incomplete_steps=True)
    assert [float(trial.tensor("x").value(step, worker=worker)[0]) for step in steps] == steps
    events = {paths.parse_step_file(name.rpartition("/")[2])[0] for name in contents(address) if "tfevents" in name}
    assert events == {*steps}
    return steps


def said(capfd):
    return capfd.readouterr().err.splitlines()


@pytest.mark.parametrize("ended", [True, False])
def test_it_goes_on_at_its_address_and_makes_the_later_steps_anew(store, address, gone, capfd, ended):
    first = begun(address)
    save(first, *range(0, 10))
    last = left(first, 5, by=gone)
    last = TrainingState(1, 5, 5, {}, last.folder, last.store._replace(waiting=(3, 5, 8)))
    store.rm_file(f"{address}/{paths.index_path(3, 'worker_0')}")
    lost = {"count": 2, "gone": 0, "steps": [2, 7], "reason": "full"}
    store.pipe_file(f"{address}/{paths.lost_path('worker_0')}", json.dumps(lost).encode())
    if ended:
        store.pipe_file(f"{address}/{paths.END_MARKER}", b"")
    # Such as a file whose index was still to come.
    store.pipe_file(f"{address}/{paths.event_path(12, 'worker_0')}", b"a part")
    second = begun(address, last)
    assert (second.location, second.relocated_because) == (address, None)
    assert said(capfd) == [
        f"smd_agent: step 3 is not in {address}, which had not taken all when the training was cut off",
        f"smd_agent: 4 steps from 6 on are removed from {address}: the training makes them anew",
    ]
    assert paths.END_MARKER not in contents(address)
    assert store_session.mark_in(contents(address)["claim.smd"]) == last.store.mark == second.place.mark
    save(second, 6, 8)
    second.close(True)
    second.clear_away()
    assert steps_at(address) == [0, 1, 2, 4, 5, 6, 8]
    assert json.loads(contents(address)[paths.lost_path("worker_0")])["steps"] == [2, 3]
    assert not store.exists(f"{address}-2")
    # What stays of the claim names nobody, and a third start finds its run by it.
    assert json.loads(contents(address)["claim.smd"]) == {"run": last.store.mark}
    third = begun(address, TrainingState(2, 8, 8, {}, None, second.place))
    assert (third.location, third.relocated_because) == (address, None)
    third.close(True)
    third.clear_away()


def test_what_this_machine_still_has_goes_to_the_store(store, address, gone, capfd, monkeypatch, tmp_path):
    first = begun(address)
    saved(first, 0, 1)
    real = type(store).put_file

    def put_file(self, *args):
        if "/events/" in args[1]:
            raise OSError(5, "it is slow")
        return real(self, *args)

    with monkeypatch.context() as slow:
        slow.setattr(type(store), "put_file", put_file)
        saved(first, 2, 3, 4)
        place = first.place
        assert place.waiting[-3:] == (2, 3, 4)
        first._at.store.end()
    first._at.folder._claim.drop()
    claimed = json.loads(contents(address)["claim.smd"])
    store.pipe_file(f"{address}/claim.smd", json.dumps({**claimed, **gone}).encode())
    second = begun(address, TrainingState(1, 3, 3, {}, str(first.root), place))
    assert (second.root, second.location, second.relocated_because) == (first.root, address, None)
    save(second, 4, 5)
    second.close(True)
    second.clear_away()
    assert said(capfd) == [f"smd_agent: step 4 is removed from {address}: the training makes them anew"]
    assert os.listdir(tmp_path / "way") == []
    assert steps_at(address) == [0, 1, 2, 3, 4, 5]


def test_a_folder_that_goes_on_is_copied_whole_wherever_its_copy_goes(store, address, gone, tmp_path):
    first = begun(str(tmp_path / "run"), upload_to=address)
    save(first, 0, 1)
    last = left(first, 1, by=gone)
    last = TrainingState(1, 1, 1, {}, str(tmp_path / "run"), last.store)
    store.rm_file(f"{address}/{paths.index_path(1, 'worker_0')}")
    second = begun(str(tmp_path / "run"), last, upload_to=address)
    save(second, 2)
    second.close(True)
    assert steps_at(address) == [0, 1, 2]
    # One of which the store knows nothing goes to another address, all of it.
    third = begun(str(tmp_path / "run"), TrainingState(2, 2, 2, {}, str(tmp_path / "run")), upload_to=address)
    save(third, 3)
    third.close(True)
    assert steps_at(f"{address}-2") == [0, 1, 2, 3]
    assert steps_at(address) == [0, 1, 2]


def test_a_place_that_is_not_its_own_any_more_is_left_alone(store, address, gone):
    first = begun(address)
    save(first, 0, 1)
    last = left(first, 0, by={**gone, "mark": "another"})
    before = contents(address)
    second = begun(address, last)
    assert second.location == f"{address}-2"
    assert second.relocated_because == f"{address} holds another run than this training's"
    second.close(True)
    second.clear_away()
    assert contents(address) == before


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_one_that_may_live_keeps_its_place(store, address, where, monkeypatch):
    # The parent lives as long as the test.
    named = claim._identity(os.getppid()) if where == "here" else {"pid": 7, "host": "another-host", "started": "1"}
    first = begun(address)
    save(first, 0, 1)
    last = left(first, 0, by=named)
    before = contents(address)
    second = begun(address, last)
    writes = "is writing" if where == "here" else "may be writing"
    assert second.location == f"{address}-2"
    assert second.relocated_because == f"process {named['pid']} on {named['host']} {writes} to {address}"
    second.close(True)
    second.clear_away()
    assert contents(address) == before
    monkeypatch.setattr(store_session, "LEFT_BEHIND_SECONDS", 0.0)
    third = begun(address, last)
    assert third.location == (f"{address}-3" if where == "here" else address)
    third.close(True)
    third.clear_away()


def test_a_claim_is_kept_fresh_and_one_that_was_taken_is_let_go(store, address, monkeypatch, capfd):
    monkeypatch.setattr(store_session, "FRESH_SECONDS", 0.1)
    run = begun(address)
    save(run, 0)
    limit = time.monotonic() + 10
    written = set()
    while len(written) < 3:
        assert time.monotonic() < limit
        written.add(store.info(f"{address}/claim.smd")["created"])
        time.sleep(0.05)
    other = {"pid": 7, "host": "another-host", "started": "1", "mark": "its"}
    store.pipe_file(f"{address}/claim.smd", json.dumps(other).encode())
    lines = []
    while not lines and time.monotonic() < limit:
        time.sleep(0.05)
        lines = said(capfd)
    (line,) = lines
    told = f"smd_agent: process 7 on another-host has taken {address} over: nothing more is uploaded, "
    assert line == f"{told}what is saved stays in {run.root}"
    before = contents(address)
    saved(run, 1)
    run.close(True)
    run.clear_away()
    assert contents(address) == before
    assert run.place is None
    assert sorted(path.name for path in run.root.rglob("*.tfevents")) == [
        f"{step:012d}_worker_0.tfevents" for step in (0, 1)
    ]


def test_a_run_that_is_not_started_again_keeps_nothing_fresh(store, address, monkeypatch):
    monkeypatch.setattr(store_session, "FRESH_SECONDS", 0.05)
    place = Destination.of(address, None, 10.0)
    run = started(Path(place.folder), uploads=place.uploads)
    written = store.info(f"{address}/claim.smd")["created"]
    time.sleep(0.3)
    assert store.info(f"{address}/claim.smd")["created"] == written
    run.close(True)
    run.clear_away()
    assert "claim.smd" not in contents(address)


def test_each_of_several_workers_goes_on_and_removes_its_own(store, address, gone):
    names = ("worker_0", "worker_1")
    first = [begun(address, worker=name, alone=False) for name in names]
    for run in first:
        save(run, 0, 1, 2)
    last = left(first[0], 1, by=gone)
    left(first[1], 1, by=gone)
    assert last.store.claim == paths.claim_path("worker_0")
    second = []
    for name in names:
        second.append(begun(address, last, worker=name, alone=False))
        save(second[-1], 2)
    for run in reversed(second):
        run.close(run.worker == "worker_0")
        run.clear_away()
    for name in names:
        assert steps_at(address, name) == [0, 1, 2]
    assert [run.location for run in second] == [address, address]


def test_a_process_made_by_a_fork_saves_into_a_folder_whatever_its_parent_waits_for(store, address, capfd):
    run = begun(address)
    saved(run, 1)
    run._at.store._queue.waiting = uploads.WAITING_BYTES + 1
    run.begin_anew()
    assert run.start("worker_0", alone=True) is None
    run.write_collections(COLLECTIONS)
    saved(run, 2)
    assert (run.location, run.folder, run.place, run.steps_lost) == (str(run.root), str(run.root), None, 0)
    assert said(capfd) == [f"smd_agent: a process made by a fork uploads nothing: what it saves stays in {run.root}"]
    run.close(True)
    run.clear_away()
    assert readable(run.root) == [2]
    assert paths.index_path(2, "worker_0") not in contents(address)


@pytest.mark.parametrize(
    "place, named, is_its",
    [
        (("s3://b/run", "claim.smd", "m"), "s3://b/run", True),
        (("s3://b/run-2", "claim_worker_0.smd", "m"), "s3://b/run", True),
        (("s3://b/run-x", "claim.smd", "m"), "s3://b/run", False),
        (("s3://b/other", "claim.smd", "m"), "s3://b/run", False),
        (("s3://b/run-3", "claim.smd", "m"), "s3://b", True),
        (("s3://b-2", "claim.smd", "m"), "s3://b", False),
        (("s3://b/run/../x", "claim.smd", "m"), "s3://b/run", False),
        (("s3://b/run-2", "index/claim.smd", "m"), "s3://b/run", False),
        (("s3://b/run-2", "claim.smd", ""), "s3://b/run", False),
    ],
)
def test_only_an_address_that_the_run_may_have_got_is_its(place, named, is_its):
    assert store_session.is_place_of(StorePlace(*place), named) is is_its
