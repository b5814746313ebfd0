"""Which worker a hook takes itself for, and what happens when the workers meet only after its first steps."""

from __future__ import annotations

import pytest

from smd_agent import guard
from smd_agent.core.run_output import Worker


class Folder:
    """A run folder, as far as the workers of a run use it."""

    location = "folder"
    relocated_because = None

    def __init__(self, owner=None):
        self.owner, self.started, self.calls = owner, False, []

    def start(self, worker, alone):
        self.calls.append((worker, alone))
        self.started = self.owner is None
        return self.owner

    def leave(self):
        self.calls.append("left")
        self.started = False


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(guard, "say", lines.append)
    return lines


@pytest.mark.parametrize("rank, include, writes", [(0, "one", True), (1, "one", False), (1, "all", True)])
def test_who_writes(rank, include, writes):
    folder = Folder()
    assert Worker(folder, include).place(rank, 2) is writes
    assert folder.calls == ([(f"worker_{rank}", False)] if writes else [])


def test_one_that_seemed_alone_goes_on_under_its_number(said):
    folder = Folder()
    worker = Worker(folder, "all")
    worker.place(0, 1)
    worker.leave_place(1)
    assert worker.writes is None
    worker.place(1, 2)
    assert folder.calls == [("worker_0", True), "left", ("worker_1", False)]
    assert said == ["the ranks have met only now: what rank 1 has saved before is worker_0 in folder"]


def test_one_that_was_turned_away_writes_once_it_has_a_number(said):
    folder = Folder(owner="process 7")
    worker = Worker(folder, "one")
    assert not worker.place(0, 1)
    assert said == ["nothing is saved from worker_0: folder is not free for it (process 7)"]
    worker.leave_place(0)
    folder.owner = None
    assert worker.place(0, 2)
    assert folder.calls == [("worker_0", True), ("worker_0", False)]


def test_one_with_a_folder_of_its_own_is_alone_there(said):
    folder = Folder()
    worker = Worker(folder, "all")
    worker.apart = True
    assert worker.place(1, 2)
    assert folder.calls == [("worker_1", True)]
