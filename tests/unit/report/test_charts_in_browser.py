"""Pages in a browser that follow a run, and those of two runs."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pytest
from harness.pages import opened, page_of, shown
from harness.rule_runs import COLLECTIONS, written
from harness.written_runs import started

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.report.page import made_page
from smd_agent.report.serving import LivePage, PageServer, waiting_page
from smd_agent.rules.registry import judge


def losses(*values):
    return [{"loss": np.float32(value), "gradient/a": np.full(3, value)} for value in values]


def test_two_runs_in_one_chart(browser, tmp_path):
    written(tmp_path / "slow", losses(3, 2, 1))
    written(tmp_path / "fast", losses(3, 1, 0.5, 0.25))
    with shown(browser, tmp_path, page_of(tmp_path / "slow", tmp_path / "fast")) as page:
        legend = page.tab.locator("[data-charts=losses] .u-legend").inner_text()
        assert "slow: TRAIN" in legend
        assert "fast: TRAIN" in legend
        assert page.errors == []


class Run:
    """A run that goes on, one step at a time."""

    def __init__(self, folder):
        self.folder, self.step = folder, 0
        self.writer = None

    def save(self, value):
        if self.writer is None:
            self.writer = started(self.folder)
            manager = CollectionManager()
            for name, pattern in COLLECTIONS.items():
                manager.get(name).include(pattern)
            self.writer.write_collections(manager.to_json())
        file = self.writer.begin_step(self.step, ModeKeys.TRAIN, self.step)
        file.add("loss", np.array(value))
        file.add("gradient/a", np.full(3, value))
        self.writer.commit(file)
        assert self.writer.flush()
        self.step += 1


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run")


@pytest.fixture
def served(browser, run, monkeypatch):
    """Serve the page about the run, and open it."""
    monkeypatch.setattr("smd_agent.report.serving._AGAIN_AFTER", 0.0)
    monkeypatch.setattr("smd_agent.report.serving._TIMES", 0.0)

    def make(mark):
        if not (run.folder / "index").is_dir():
            return waiting_page("there is no run")
        trial = opened(run.folder)
        return made_page(trial, judge(trial), live=mark)

    @contextmanager
    def serving():
        with PageServer(LivePage(str(run.folder), make)) as server, browser.new_context() as context:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            tab = context.new_page()
            tab.errors = []
            tab.on("pageerror", lambda error: tab.errors.append(str(error)))
            try:
                tab.goto(server.address)
                yield tab, server
            finally:
                server.shutdown()
                thread.join()
                assert tab.errors == []

    return serving


def test_a_page_follows_its_run_from_before_its_first_step(served, run):
    with served() as (tab, _):
        assert "Waiting for the run" in tab.inner_text("body")
        run.save(3.0)
        tab.wait_for_selector("html[data-ready]", timeout=20_000)
        for value in (2.0, np.nan, np.nan):
            run.save(value)
        tab.wait_for_selector(".verdict.problem", timeout=20_000)
        assert "LossNotFinite" in tab.inner_text(".verdict")
        run.writer.close(True)
        tab.wait_for_selector("dd:text-is('finished')", timeout=20_000)


def test_what_was_chosen_stays(served, run):
    for value in range(8, 0, -1):
        run.save(float(value))
    with served() as (tab, _):
        tab.wait_for_selector("html[data-ready]", timeout=20_000)
        tab.fill("#filter", "grad")
        tab.click("[data-zoom=in]")
        before = tab.inner_text("#range")
        tab.evaluate("document.documentElement.dataset.old = 1")
        run.save(0.5)
        tab.wait_for_selector("html[data-ready]:not([data-old])", timeout=20_000)
        assert tab.input_value("#filter") == "grad"
        assert tab.inner_text("#range") == before


def test_a_server_that_has_ended_is_no_error(served, run):
    run.save(1.0)
    with served() as (tab, server):
        tab.wait_for_selector("html[data-ready]", timeout=20_000)
        server.shutdown()
        server.server_close()
        tab.wait_for_selector("#live:text('The server has ended')", timeout=20_000)


def test_a_page_in_a_file_asks_nobody(browser, tmp_path):
    written(tmp_path / "run", losses(1, 2))
    with shown(browser, tmp_path, page_of(tmp_path / "run")) as page:
        page.tab.wait_for_timeout(1500)
        assert (page.requests, page.errors) == ([], [])
