"""The page that is served: to whom, what, and how it follows a run."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from harness.rule_runs import written
from harness.written_runs import save, started

from smd_agent.report.serving import LivePage, PageServer, waiting_page


@contextmanager
def serving(page):
    with PageServer(page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Fixed:
    """A page that stays as it is."""

    def text(self):
        return b"the page"

    def mark(self):
        return "mark 1"


@pytest.fixture
def server():
    with serving(Fixed()) as server:
        yield server


def asked(server, path, host=None, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.port}"})
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        connection.close()


def test_the_page_and_its_mark(server):
    status, body, headers = asked(server, f"/{server.word}/")
    assert (status, body, headers["Content-Type"]) == (200, b"the page", "text/html; charset=utf-8")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert asked(server, f"/{server.word}/mark")[:2] == (200, b"mark 1")
    assert asked(server, f"/{server.word}/", f"localhost:{server.port}")[0] == 200
    assert asked(server, f"/{server.word}/", method="HEAD")[:2] == (200, b"")


WRONG = ("/", "/mark", "//mark", "/WORD", "/WORDx/", "/xWORD/", "/wrong/", "/%2e%2e/WORD/", "*")


@pytest.mark.parametrize("path", WRONG)
def test_who_does_not_know_the_word_is_refused(server, path):
    status, body, _ = asked(server, path.replace("WORD", server.word))
    assert status == (404 if path == "/WORD" else 403)
    assert b"page" not in body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:PORT"]
)
def test_a_site_that_has_its_name_lead_here_is_refused(server, host):
    status, body, _ = asked(server, f"/{server.word}/", host.replace("PORT", str(server.port)))
    assert (status, b"page" in body) == (403, False)


def test_nothing_is_changed_by_anybody(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert asked(server, f"/{server.word}/", method=method)[0] == 501
    assert asked(server, f"/{server.word}/page.html")[0] == 404


def test_only_this_machine_is_served(server):
    assert server.socket.getsockname()[0] == "127.0.0.1"
    assert len(server.word) >= 32
    with PageServer(Fixed()) as other:
        assert other.word != server.word


def test_who_connects_and_says_nothing_keeps_nobody_waiting(server):
    with socket.create_connection(("127.0.0.1", server.port)):
        assert asked(server, f"/{server.word}/")[0] == 200


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr("smd_agent.report.serving._AGAIN_AFTER", 0.0)
    monkeypatch.setattr("smd_agent.report.serving._TIMES", 0.0)


def test_a_page_is_made_again_when_the_run_has_changed(tmp_path, at_once):
    made = []
    page = LivePage(str(tmp_path / "run"), lambda mark: made.append(mark) or f"page {len(made)}")
    assert page.text() == page.text() == b"page 1"
    run = started(tmp_path / "run")
    assert run.flush()
    assert page.text() == b"page 2"
    for step in range(2):
        save(run, step)
        assert run.flush()
        time.sleep(0.02)
        assert page.mark() != made[-1]
        assert page.text() == f"page {step + 3}".encode()
    run.close(end_marker=True)
    assert page.text() == b"page 5"
    assert page.mark() == made[-1]


def test_it_is_not_made_more_often_than_it_is_worth(tmp_path):
    made = []
    page = LivePage(str(tmp_path / "run"), lambda mark: made.append(mark) or "page")
    page.text()
    started(tmp_path / "run").flush()
    assert page.mark() == made[0]
    page.text()
    assert len(made) == 1


def test_the_waiting_page_asks_again_and_takes_nothing_for_html():
    page = waiting_page("there is no run at <script>")
    assert '<meta http-equiv="refresh" content="2">' in page
    assert "<script>" not in page
    assert "default-src" in page


@contextmanager
def command(*words):
    process = subprocess.Popen(
        [sys.executable, "-m", "smd_agent", "report", *map(str, words), "--serve"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_command_from_a_run_that_is_not_there_to_its_end(tmp_path):
    with command(tmp_path / "run") as process:
        line = process.stdout.readline().split()
        assert line[:3] == ["serving", str(tmp_path / "run"), "at"]
        address = line[3]
        port = int(address.split(":")[2].split("/")[0])
        assert process.stdout.readline() == "Ctrl-C ends it\n"

        def page_with(words):
            deadline = time.monotonic() + 60
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("GET", address.removeprefix(f"http://127.0.0.1:{port}"))
                text = connection.getresponse().read().decode()
                connection.close()
                if words in text:
                    return text
                assert time.monotonic() < deadline, text[:500]
                time.sleep(0.2)

        page_with("Waiting for the run")
        written(tmp_path / "run", [{"loss": np.float32(value)} for value in (3, 2, np.nan)], ended=False)
        page = page_with("LossNotFinite")
        assert "connect-src &#x27;self&#x27;" in page or "connect-src 'self'" in page
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (0, "ended\n", "")


def test_a_file_is_not_written_too(tmp_path, capsys):
    from smd_agent.cli import main

    assert main(["report", str(tmp_path), "--serve", "-o", "page.html"]) != 0
    assert "leave -o out" in capsys.readouterr().err
