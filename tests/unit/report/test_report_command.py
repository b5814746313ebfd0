"""The command report: what it prints, writes and returns."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest
from harness.rule_runs import written

from smd_agent.cli import main


@pytest.fixture
def runs(tmp_path):
    for name, last in (("good", 1.0), ("bad", np.nan)):
        written(tmp_path / name, [{"loss": np.float32(value)} for value in (3, 2, last)])
    return tmp_path


@pytest.fixture
def command(capsys):
    def call(*words):
        code = main(["report", *map(str, words)])
        written = capsys.readouterr()
        return code, written.out.splitlines(), written.err.splitlines()

    return call


def test_a_page_is_written(runs, command):
    page = runs / "page.html"
    code, out, err = command(runs / "bad", "-o", page)
    assert (code, err) == (0, [])
    assert out == [f"wrote {page} ({len(page.read_bytes()) / 1000:.3g} kB)"]
    assert "LossNotFinite" in page.read_text("utf-8")
    assert [path.name for path in runs.glob("page*")] == ["page.html"]


def test_an_old_page_is_replaced(runs, command, monkeypatch):
    monkeypatch.chdir(runs)
    assert command("bad")[0] == command("good")[0] == 0
    assert "LossNotFinite, from" not in (runs / "report.html").read_text("utf-8")


def test_two_runs(runs, command):
    assert command(runs / "good", "--against", runs / "bad", "-o", runs / "page.html")[0] == 0
    text = (runs / "page.html").read_text("utf-8")
    assert f"against {runs / 'bad'}" in text


def test_the_browser_is_asked(runs, command, monkeypatch):
    asked = []
    monkeypatch.setattr("webbrowser.open", asked.append)
    assert command(runs / "good", "-o", runs / "page.html", "--open")[0] == 0
    assert asked == [(runs / "page.html").as_uri()]


@pytest.mark.parametrize(
    "words, said",
    [
        (("nowhere",), "smd_agent: there is no run at nowhere: no such folder"),
        (("good", "--against", "nowhere"), "smd_agent: there is no run at nowhere: no such folder"),
        (("good", "-o", "."), "smd_agent: . is a folder: name a file for the page"),
        (("good", "-o", "none/page.html"), "smd_agent: none/page.html cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_done(runs, command, monkeypatch, words, said):
    monkeypatch.chdir(runs)
    code, out, err = command(*words)
    assert code != 0
    assert (out, err) == ([], [said])


def test_a_damaged_run_has_a_page_that_says_so(runs, command):
    (event,) = (runs / "good" / "events" / "000000000001").iterdir()
    data = bytearray(event.read_bytes())
    data[-10] ^= 255
    event.write_bytes(bytes(data))
    code, _, _ = command(runs / "good", "-o", runs / "page.html")
    assert code == 1
    assert "loss of step 1" in (runs / "page.html").read_text("utf-8") or "damaged" in (runs / "page.html").read_text()


def test_the_package_has_the_parts_of_the_page_and_the_licence_of_the_library():
    names = {str(path) for path in metadata.files("smd-agent")}
    static = {name.rpartition("/")[2] for name in names if name.startswith("smd_agent/report/static/")}
    assert {"page.html", "page.css", "main.js", "uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE"} <= static
    assert any(name.endswith("licenses/smd_agent/report/static/uPlot.LICENSE") for name in names)
