"""Requests to a running training as files in its run's folder: who writes them, who takes them, who is to answer."""

from __future__ import annotations

import json
import os
import time

import pytest
from harness.run_writers import start

from smd_agent.cli import main
from smd_agent.core.ports import Place
from smd_agent.core.requests import DUMP, SAVE, Answer, Request
from smd_agent.errors import SMDebugError, SMDebugValueError
from smd_agent.formats.requests import Posted, posted_in, request_text
from smd_agent.storage import control_watch
from smd_agent.storage.control_files import answers_to, planned, post, request_stop, writer_of
from smd_agent.storage.run_writer import RunWriter


class Training:
    """A training at some step, which notes what it is asked for."""

    def __init__(self, step=10):
        self.step = step
        self.taken = []
        self.answer = None

    def take(self, request):
        self.taken.append(request)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(control_watch, "LOOK_SECONDS", 0.02)


def listening(folder, rank=0, size=1, writers=None, writes=True, **options):
    writer, training = RunWriter(str(folder), **options), Training()
    if writes:
        assert writer.start(f"worker_{rank}", alone=size == 1) is None
    writer.listen(training, Place(rank, size, size if writers is None else writers))
    return writer, training


def wait_for(found):
    until = time.monotonic() + 20
    while not (result := found()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return result


def test_a_request_is_taken_and_answered(tmp_path):
    writer, training = listening(tmp_path / "run")
    name = post(writer.root, SAVE, collections=("losses",), steps=7, at=3)
    (taken,) = wait_for(lambda: training.taken)
    assert taken == Request(name, SAVE, at=3, collections=("losses",), steps=7)
    assert planned(writer.root, name).workers == 1
    training.answer(Answer(name, True, "done", 12, 5))
    answers = wait_for(lambda: answers_to(writer.root, name))
    assert answers == {"worker_0": Answer(name, True, "done", 12, 5)}
    # The request is gone; what is left says what was done.
    assert sorted(path.name for path in (writer.root / "control").iterdir()) == [f"{name}.plan.json", "answers"]
    writer.close(end_marker=True)


def test_several_workers_are_told_one_step_that_lies_ahead(tmp_path):
    first, one = listening(tmp_path / "run", 0, 3, writers=2)
    second, two = listening(tmp_path / "run", 1, 3, writers=2)
    # It writes nothing, so that its folder is the one that was named.
    third, three = listening(tmp_path / "run", 2, 3, writers=2, writes=False)
    saves = post(first.root, DUMP)
    stops = request_stop(first.root, "enough", at_step=1000, asked_by="a rule")
    for training, count in ((one, 2), (two, 2), (three, 1)):
        wait_for(lambda training=training, count=count: len(training.taken) == count)
    assert one.taken == two.taken
    assert three.taken == one.taken[1:]
    assert [request.fixed for request in one.taken] == [True, True]
    assert one.taken[0].at >= one.step + 2
    assert (one.taken[1].at, one.taken[1].why, one.taken[1].asked_by) == (1000, "enough", "a rule")
    assert [planned(first.root, name).workers for name in (saves, stops)] == [2, 3]
    three.answer(Answer(stops, True, "stopped"))
    wait_for(lambda: "worker_2" in answers_to(first.root, stops))
    for writer in (first, second):
        writer.close(end_marker=False)
    third.listen(None, Place(2, 3, 2))


def test_the_first_worker_is_found_beside_a_finished_run(tmp_path):
    finished = start(tmp_path / "run")
    finished.close(end_marker=True)
    first, one = listening(tmp_path / "run", 0, 2, writers=1)
    assert first.root.name == "run-2"
    other, two = listening(tmp_path / "run", 1, 2, writers=1, writes=False)
    request_stop(first.root, "enough")
    assert wait_for(lambda: two.taken) == wait_for(lambda: one.taken)
    first.close(end_marker=False)
    other.listen(None, Place(1, 2, 1))


def test_what_an_earlier_run_was_asked_for_is_not_obeyed(tmp_path):
    writer, _ = listening(tmp_path / "run", tap=False)
    name = request_stop(writer.root, "old")
    writer.close(end_marker=False)
    again, training = listening(tmp_path / "run")
    assert again.root == writer.root
    answers = wait_for(lambda: answers_to(again.root, name))
    assert answers["worker_0"].text == "it was meant for an earlier run in this folder"
    assert training.taken == []
    again.close(end_marker=True)


def test_nobody_writes(tmp_path):
    with pytest.raises(SMDebugError, match=r"nobody writes to .*: the run has ended, or has not begun to save"):
        writer_of(tmp_path)
    gone = {"pid": 2**22 + 1, "host": os.uname().nodename, "started": "1", "mark": "x"}
    (tmp_path / "claim.smd").write_text(json.dumps(gone))
    with pytest.raises(SMDebugError, match=f"nobody writes to .*: process {2**22 + 1} on .* is gone"):
        request_stop(tmp_path, "enough")


def test_a_folder_that_is_changed_by_others_is_looked_at_again(tmp_path):
    writer, training = listening(tmp_path / "run")
    (writer.root / "control").mkdir()
    (writer.root / "control/notes.txt").write_text("somebody's")
    names = [post(writer.root, DUMP) for _ in range(3)]
    wait_for(lambda: len(training.taken) == 3)
    assert [request.name for request in training.taken] == names
    writer.close(end_marker=True)


def test_as_long_as_nobody_asks_a_look_is_one_question_to_the_system(tmp_path, monkeypatch):
    writer, _ = listening(tmp_path / "run")
    asked = []
    monkeypatch.setattr(control_watch, "names_in", lambda *names: asked.append(names) or [])
    time.sleep(0.3)
    assert asked == []
    (writer.root / "control").mkdir()
    os.utime(writer.root / "control", (1, 1))
    time.sleep(0.3)
    assert len(asked) == 1
    writer.close(end_marker=True)


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    writer, training = listening(tmp_path / "run")
    (writer.root / "control").symlink_to(tmp_path / "elsewhere")
    posted = Posted(Request("0", DUMP), str(writer_of(writer.root)["mark"]))
    (tmp_path / "elsewhere/0.request.json").write_text(request_text(posted))
    time.sleep(0.3)
    assert training.taken == []
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["0.request.json"]
    writer.close(end_marker=True)


@pytest.mark.parametrize(
    "text, words",
    [
        ("[1]", "the request is no JSON object"),
        ("[" * 100_000, "the request is no JSON object"),
        ('{"action": "dump"}', "the request does not say which run it is for"),
        ('{"action": "dump", "run": "x", "eval": 1}', "the key eval is unknown; there are name, action, at, "),
        ('{"action": "dump", "run": "x", "at": 1.5}', "at is 1.5, allowed is a whole number"),
        ('{"action": "dump", "run": "x", "at": true}', "at is True, allowed is a whole number"),
        ('{"action": "stop", "run": "x", "why": ["y"]}', "why is ['y'], allowed is a text of at most 1000 characters"),
        ('{"action": "save", "run": "x", "collections": [1]}', "collections is [1], allowed is a list of at most 100"),
    ],
)
def test_text_that_is_no_request(text, words):
    with pytest.raises(SMDebugValueError) as refused:
        posted_in("a", text)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "name one request: --collection NAME, --dump, --replay-next, --stop WHY or set KEY VALUE"),
        (["--dump", "--stop", "x"], "name one request: "),
        (["--steps", "5"], "--steps says for how many steps --collection is saved: name one"),
        (["set", "save_interval"], "set save_interval is no request; a setting is changed by set KEY VALUE"),
        (["set", "save_interval", "often"], "the value of save_interval is 'often', allowed is a whole number"),
        (["set", "dry_run", "1"], "key is 'dry_run', allowed is save_interval, train.save_interval"),
        (["--collection", "losses", "--steps", "0"], "steps is 0, allowed is a whole number from 1 up"),
    ],
)
def test_a_command_that_makes_no_sense(tmp_path, capsys, words, said):
    writer = start(tmp_path / "run")
    assert main(["tap", str(tmp_path / "run"), *words]) == 2
    assert capsys.readouterr().err.startswith(f"smd_agent: {said}")
    assert not (writer.root / "control").exists()
    writer.close(end_marker=True)


def test_an_address_is_refused_in_one_line(capsys):
    assert main(["tap", "s3://bucket/run", "--dump"]) == 2
    assert capsys.readouterr().err == (
        "smd_agent: s3://bucket/run is an address: tap takes the folder that the run is written into, on the machine "
        "where it trains\n"
    )


def test_a_run_that_went_beside_is_named(tmp_path, capsys):
    start(tmp_path / "run").close(end_marker=True)
    writer = start(tmp_path / "run")
    assert writer.flush()
    assert main(["tap", str(tmp_path / "run"), "--dump"]) == 2
    run = tmp_path / "run"
    assert capsys.readouterr().err == (
        f"smd_agent: nobody writes to {run}: the run has ended, or has not begun to save; {run}-2 is written\n"
    )
    writer.close(end_marker=True)


def test_nobody_answers(tmp_path, capsys):
    writer, _ = listening(tmp_path / "run", tap=False)
    assert main(["tap", str(tmp_path / "run"), "--dump", "--wait", "0.3"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("smd_agent: nobody has answered within 0.3 s: is the job running, on what host, and ")
    assert f"process {os.getpid()} on " in said
    writer.close(end_marker=True)


def test_a_request_that_is_taken_and_not_yet_obeyed(tmp_path, capsys):
    writer, training = listening(tmp_path / "run")
    assert main(["tap", str(tmp_path / "run"), "--dump", "--wait", "0.5"]) == 1
    assert len(training.taken) == 1
    assert (
        "the request was taken, and no training step has obeyed within 0.5 s; it still may" in capsys.readouterr().err
    )
    writer.close(end_marker=True)
