"""Names from a run's files and from users reach the terminal without what acts on it."""

from __future__ import annotations

import io
import json
import logging
import sys

import numpy as np
import pytest

from smd_agent import create_trial, guard
from smd_agent.cli import main
from smd_agent.errors import DamagedRecord
from smd_agent.formats.paths import event_path
from smd_agent.printable import printable, shortened

RED = "\x1b[31mred\x1b[0m"
NAMES = (RED, "two\nlines", "right\u202eleft", "bell\x07", "c1\x9b31m", "half\ud800", "line\u2028end")
SEEN = (r"\x1b[31mred\x1b[0m", r"two\nlines", r"right\u202eleft", r"bell\x07", r"c1\x9b31m", r"half\ud800")


@pytest.fixture
def odd_names(run):
    # A name that is no UTF-8 is in no record, but can be in an index.
    run.collections(**{"two\nlines": "two", RED: "red"})
    run.step(0, {name: np.arange(2.0) for name in NAMES if name != "half\ud800"}, shapes={"half\ud800": (2,)})
    run.step(1, worker="worker_\x1b[2J")
    return run


def said(capsys, *words):
    code = main([*words])
    written = capsys.readouterr()
    for text in (written.out, written.err):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
    return code, written.out, written.err


def test_ls_prints_names_that_do_nothing(odd_names, capsys):
    code, out, _ = said(capsys, "ls", str(odd_names.root), "--all")
    assert code == 0
    assert [name for name in SEEN if name not in out] == []
    assert "worker_\\x1b[2J" in out
    names = [line for line in out.splitlines() if "float64" in line]
    assert len({line.index("float64") for line in names}) == 1


def test_show_prints_names_that_do_nothing(odd_names, capsys):
    code, out, _ = said(capsys, "show", str(odd_names.root), ".", "--raw")
    assert code == 0
    assert [name for name in SEEN if name not in out] == []
    code, _, err = said(capsys, "show", str(odd_names.root), RED.replace("[", r"\["), "--mode", "eval")
    assert code == 1
    assert "x1b" in err


def test_text_values_do_nothing(run, capsys):
    from smd_agent.core.modes import ModeKeys
    from smd_agent.storage.run_writer import RunWriter

    writer = RunWriter(str(run.root))
    writer.start("worker_0", True)
    step = writer.begin_step(0, ModeKeys.TRAIN, 0)
    step.add_text("words", [RED, "a\nb"])
    writer.commit(step)
    writer.write_collections("{}")
    writer.close(True)
    for words in ([], ["--raw"]):
        code, out, _ = said(capsys, "show", str(run.root), "words", *words)
        assert code == 0
        assert "x1b[31mred" in out


def test_a_long_name_is_cut_in_a_row(run, capsys):
    run.collections(all=".*").step(0, {"x" * 100_000: np.zeros(1), "y": np.zeros(1)})
    for words in (["ls"], ["show", "."]):
        _, out, _ = said(capsys, words[0], str(run.root), *words[1:])
        assert len(out) < 3000
        assert "x..." in out


def test_errors_and_warnings_name_files_that_do_nothing(odd_names, caplog):
    text = str(DamagedRecord("a\x1b[2J", RED, 3, "it is cut off"))
    assert text == rf"Tensor {printable(RED)} at step 3 is damaged in a\x1b[2J: it is cut off"
    (odd_names.root / "index/000000000" / "000000000002_w\x1b[2J.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        create_trial(str(odd_names.root), timeout=0)
    assert [record.getMessage() for record in caplog.records if not record.getMessage().isprintable()] == []
    assert "000000000002_w\\x1b[2J" in caplog.text


def test_lines_of_the_agent_do_nothing(capsys):
    guard.say(f"no tensor of {RED}, right\u202eleft\ncame up")
    assert capsys.readouterr().err == f"smd_agent: no tensor of {printable(RED)}, right\\u202eleft came up\n"


def test_a_terminal_that_knows_ascii_only_gets_the_rest_spelled_out(run, monkeypatch):
    run.collections().step(0, {"größe": np.zeros(1)})
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["ls", str(run.root)]) == 0
    assert b"gr\\xf6\\xdfe" in stream.buffer.getvalue()


def test_what_can_be_printed_stays(run):
    assert printable("größe 大 conv1.weight:0 😀") == "größe 大 conv1.weight:0 😀"
    assert shortened("a" * 200) == "a" * 200
    assert shortened("a" * 201) == "a" * 197 + "..."
    assert shortened("\x1b" * 100, 20) == "\\x1b" * 4 + "\\..." or shortened("\x1b" * 100, 20).isprintable()


def test_an_index_of_odd_names_is_sound(odd_names):
    text = (odd_names.root / "index/000000000/000000000000_worker_0.json").read_text()
    assert json.loads(text)["meta"]["event_file_name"] == event_path(0, "worker_0")
