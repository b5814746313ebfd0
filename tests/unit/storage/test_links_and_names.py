"""Whoever may write into the run's folder cannot have the agent write elsewhere: no link is followed, no name known."""

from __future__ import annotations

import os

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import END_MARKER, collections_path, event_path, index_path
from smd_agent.storage.run_writer import RunWriter

FILES = (event_path(0, "worker_0"), index_path(0, "worker_0"), collections_path("worker_0"), END_MARKER)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "run"


def save_a_step(root, harm=lambda: None):
    """Save a run of one step; ``harm`` is done to its folder once it has one."""
    run = RunWriter(str(root))
    run.start("worker_0", alone=True)
    harm()
    step = run.begin_step(0, ModeKeys.TRAIN, 0)
    step.add("x", np.zeros(3))
    run.commit(step)
    run.write_collections("{}")
    run.close(end_marker=True)
    return run


@pytest.mark.parametrize("name", FILES)
def test_a_link_under_the_name_of_a_temporary_file_is_not_followed(root, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = root / name

    def harm():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}.{os.getpid()}.tmp").symlink_to(victim)

    save_a_step(root, harm)
    assert victim.read_text() == "precious"
    assert path.is_file()
    assert not path.is_symlink()


@pytest.mark.parametrize("name", FILES)
def test_a_link_under_the_name_of_the_file_is_replaced(root, tmp_path, name):
    victim = tmp_path / "victim"
    if name != END_MARKER:
        victim.write_text("precious")
    path = root / name

    def harm():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(victim)

    save_a_step(root, harm)
    assert name == END_MARKER or victim.read_text() == "precious"
    assert path.is_file()
    assert not path.is_symlink()


@pytest.mark.parametrize("folder", ["events", "events/000000000000", "index", "index/000000000", "collections"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(root, tmp_path, folder, capfd):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def harm():
        (root / folder).parent.mkdir(parents=True, exist_ok=True)
        (root / folder).symlink_to(elsewhere)

    save_a_step(root, harm)
    assert list(elsewhere.rglob("*")) == []
    lines = [line for line in capfd.readouterr().err.splitlines() if f"{root / folder} is a link" in line]
    assert lines


def test_nothing_is_removed_behind_a_link(root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    theirs = [elsewhere / "000000000000_worker_0.json", elsewhere / "draft.tmp"]
    elsewhere.mkdir()
    for path in theirs:
        path.touch()
        os.utime(path, (0, 0))
    for folder in ("events/000000000000", "index/000000000", "collections/000000000", "lost"):
        (root / folder).parent.mkdir(parents=True, exist_ok=True)
        (root / folder).symlink_to(elsewhere)
    for alone in (True, False):
        run = RunWriter(str(root))
        run.start("worker_0", alone=alone)
        assert run.flush()
        run.close(end_marker=False)
    assert all(path.exists() for path in theirs)


def test_the_runs_folder_may_be_a_link(root, tmp_path):
    (tmp_path / "disk").mkdir()
    root.symlink_to(tmp_path / "disk")
    assert save_a_step(root).saved.steps == 1
    assert all((tmp_path / "disk" / name).is_file() for name in FILES)


def test_temporary_names_cannot_be_guessed(root, monkeypatch):
    names = set()
    replace = os.replace

    def look(source, *rest, **keywords):
        names.add(os.path.basename(source))
        return replace(source, *rest, **keywords)

    monkeypatch.setattr(os, "replace", look)
    for folder in ("a", "b"):
        save_a_step(root / folder)
    assert len(names) == 2 * len(FILES)


@pytest.mark.parametrize("umask, file, folder", [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775)])
def test_files_have_the_modes_that_the_user_asked_for(root, umask, file, folder):
    before = os.umask(umask)
    try:
        save_a_step(root)
    finally:
        os.umask(before)
    modes = {name: (root / name).stat().st_mode & 0o777 for name in FILES}
    assert modes == dict.fromkeys(FILES, file)
    assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_dir()} == {folder}


def test_nothing_stays_open(root):
    save_a_step(root / "first")
    before = len(os.listdir("/proc/self/fd"))
    save_a_step(root / "second")
    (root / "third").mkdir()
    (root / "third/events").symlink_to(root)
    save_a_step(root / "third")
    assert len(os.listdir("/proc/self/fd")) == before
