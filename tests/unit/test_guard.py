"""The fence and the voice: what our own failures may do, which is next to nothing."""

import contextlib
import io
import os
import sys

import pytest

from smd_agent import guard
from smd_agent.cli.output import emit


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing has been said yet."""
    monkeypatch.setattr(guard.lines, "said", set())
    monkeypatch.setattr(guard.lines, "unsaid", [])
    monkeypatch.setattr(guard, "strict", False)


class BrokenStream(io.StringIO):
    def write(self, text):
        raise OSError("no space left")


def closed_stream():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed_stream(), BrokenStream(), object()])
def test_say_survives_a_stream_that_is_missing_or_broken(stream, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", stream)
    guard.say("something")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("known", ["KEY:SECRET", "TOKEN", "KEY:SEC%2FRET"])
def test_what_an_address_has_before_its_host_is_not_said(known, capsys):
    guard.say(f"saving losses to s3://{known}@bucket/run (s3://{known}@bucket/run-2)")
    assert capsys.readouterr().err == "smd_agent: saving losses to s3://***@bucket/run (s3://***@bucket/run-2)\n"
    emit(f"Run      s3://{known}@bucket/run")
    emit("Run      s3://bucket/a@b")
    assert capsys.readouterr().out == "Run      s3://***@bucket/run\nRun      s3://bucket/a@b\n"


def test_say_writes_one_prefixed_line(capsys):
    guard.say("two\nlines")
    assert capsys.readouterr() == ("", "smd_agent: two lines\n")


@contextlib.contextmanager
def full_pipe(monkeypatch):
    """A pipe as stderr whose other end nobody reads; gives that end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    monkeypatch.setattr(guard.lines, "waited", False)
    with os.fdopen(writing, "w") as stream, os.fdopen(reading, "rb", buffering=0) as other_end:
        monkeypatch.setattr(sys, "stderr", stream)
        yield other_end
        monkeypatch.setattr(sys, "stderr", sys.__stderr__)


@pytest.mark.usefixtures("impatient")
def test_say_does_not_wait_for_a_pipe_that_nobody_reads(monkeypatch):
    with full_pipe(monkeypatch) as pipe:
        for number in range(100):
            guard.say(f"line {number}")
        pipe.read(1 << 20)
        guard.say("the next one")
        lines = pipe.read(1 << 20).decode().splitlines()
    assert lines == [*(f"smd_agent: line {number}" for number in range(51, 100)), "smd_agent: the next one"]


@pytest.mark.usefixtures("impatient")
def test_say_puts_no_more_than_a_page_into_a_pipe(monkeypatch):
    with full_pipe(monkeypatch) as pipe:
        pipe.read(4096)
        guard.say("é" * 100_000)
        assert pipe.read(1 << 20).endswith("é ...\n".encode())


def test_say_once_tells_keys_apart(capsys):
    for key in ("a", "b", "a"):
        guard.say_once(key, key)
    assert capsys.readouterr().err == "smd_agent: a\nsmd_agent: b\n"


def test_fence_hands_arguments_and_result_through():
    assert guard.fence("adding")(lambda a, b=1: a + b)(2, b=3) == 5


def test_fenced_function_keeps_its_name():
    @guard.fence("x")
    def named():
        """Say it."""

    assert (named.__name__, named.__doc__, named.__module__) == ("named", "Say it.", __name__)


def test_fence_reports_once(capsys):
    @guard.fence("saving")
    def fail(text):
        raise ValueError(text)

    assert fail("one") is None
    assert fail("two") is None
    assert capsys.readouterr().err == "smd_agent: saving failed (ValueError: one)\n"


@pytest.mark.parametrize("failures, expected", [(1, ("done", "")), (2, (None, "smd_agent: ending failed (2)\n"))])
def test_fence_tries_again_what_is_to_be_tried_again(failures, expected, capsys, monkeypatch):
    monkeypatch.setattr(guard, "describe", lambda error: f"{error}")
    calls = []

    @guard.fence("ending", again=True)
    def end():
        calls.append(1)
        if len(calls) <= failures:
            raise ValueError(len(calls))
        return "done"

    assert (end(), capsys.readouterr().err) == expected


def test_each_fence_reports_for_itself(capsys):
    for what in ("first", "second"):
        guard.fence(what)(lambda: 1 / 0)()
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_fence_lets_pass_what_is_no_exception(error):
    @guard.fence("x")
    def stop():
        raise error

    with pytest.raises(error):
        stop()


def test_strict_fence_reports_and_raises(monkeypatch, capsys):
    monkeypatch.setattr(guard, "strict", True)
    with pytest.raises(ZeroDivisionError):
        guard.fence("dividing")(lambda: 1 / 0)()
    assert "dividing failed (ZeroDivisionError: division by zero)" in capsys.readouterr().err


def test_error_whose_text_cannot_be_made_is_described():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError

    assert guard.describe(Silent()) == "Silent: its text cannot be shown"
    assert guard.describe(ValueError()) == "ValueError"
