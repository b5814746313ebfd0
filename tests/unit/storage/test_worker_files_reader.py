"""What a worker notes of itself: written with the run, read back, and left out where it is damaged."""

from __future__ import annotations

import json

import pytest
from harness.written_runs import readable, saved, started

from smd_agent.storage.worker_files_reader import read_about

FACTS = {"versions": {"Python": "3.11.7"}, "seeds": {"PyTorch": "5"}}


def test_it_is_there_while_the_run_goes_on_and_has_the_time_at_its_end(tmp_path):
    run = started(tmp_path / "run")
    run.write_about(FACTS, None)
    saved(run, 0)
    (about,) = read_about(run.root)
    assert (about.worker, about.environment, about.took, about.share) == ("worker_0", FACTS, None, None)
    run.write_about(FACTS, (0.5, 10.0))
    run.close(end_marker=True)
    (about,) = read_about(run.root)
    assert (about.environment, about.took, about.share) == (FACTS, (0.5, 10.0), 0.05)
    assert readable(run.root) == [0]


def test_each_worker_has_its_own(tmp_path):
    for number in (1, 0):
        run = started(tmp_path / "run", f"worker_{number}", alone=False)
        run.write_about({"machine": {"GPU": f"number {number}"}}, None)
        saved(run, number)
        run.close(end_marker=False)
    assert [one.environment["machine"]["GPU"] for one in read_about(tmp_path / "run")] == ["number 0", "number 1"]


def test_it_goes_with_the_run_into_another_folder(tmp_path):
    run = started(tmp_path / "run")
    run.write_about(FACTS, None)
    saved(run, 0)
    (tmp_path / "run").rename(tmp_path / "moved")
    saved(run, 1)
    assert [one.environment for one in read_about(run.root)] == [FACTS]
    assert run.root != tmp_path / "moved"


def test_nothing_is_written_into_a_folder_that_was_given_up(tmp_path):
    run = started(tmp_path / "run")
    saved(run, 0)
    run.write_about(FACTS, (1.0, 2.0))
    run.close(end_marker=True)
    run.write_about(FACTS, (3.0, 4.0))
    run.close(end_marker=True)
    assert [one.took for one in read_about(run.root)] == [(1.0, 2.0)]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "\xff", "[" * 100_000, '{"environment": 3}', '{"took": {"agent": "x", "all": []}}']
)
def test_damaged_ones_say_nothing(tmp_path, text):
    (tmp_path / "about").mkdir()
    (tmp_path / "about/worker_0.json").write_text(text, encoding="latin-1")
    (tmp_path / "about/worker_1.json").write_text(json.dumps({"environment": FACTS, "took": None}))
    assert [one.worker for one in read_about(tmp_path) if one.environment or one.took] == ["worker_1"]


@pytest.mark.parametrize("took", ['{"agent": NaN, "all": 1}', '{"agent": 1, "all": 0}', '{"agent": 1, "all": 1e999}'])
def test_times_that_are_none_are_not_known(tmp_path, took):
    (tmp_path / "about").mkdir()
    (tmp_path / "about/worker_0.json").write_text(f'{{"environment": {{}}, "took": {took}}}')
    assert [one.took for one in read_about(tmp_path)] == [None]


def test_much_of_it_is_cut(tmp_path):
    (tmp_path / "about").mkdir()
    facts = {"versions": {f"{'x' * 600}{number}": "y" * 600 for number in range(120)}, "seeds": {"a": 3}, "b": []}
    (tmp_path / "about/worker_0.json").write_text(json.dumps({"environment": facts, "took": None}))
    (about,) = read_about(tmp_path)
    assert {group: len(own) for group, own in about.environment.items()} == {"versions": 1, "seeds": 0}
    assert max(map(len, (*about.environment["versions"], *about.environment["versions"].values()))) == 500
