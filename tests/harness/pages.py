"""Pages about runs: made of a run that a test writes, and opened in a browser without a network."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.report.collecting import collect
from smd_agent.report.heatmaps import KINDS, Grid, NonFinite
from smd_agent.report.page import made_page
from smd_agent.rules.registry import judge

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PHONE, DESK = (390, 844), (1200, 900)


def page_of(folder: Path, against: Path | None = None) -> str:
    """Return the page about a run."""
    trial = opened(folder)
    other = None if against is None else opened(against)
    return made_page(trial, judge(trial), None if other is None else (other, judge(other)))


def opened(folder: Path) -> Trial:
    """Open a run as commands do."""
    trial = create_trial(str(folder), timeout=0)
    trial.take_as_it_is()
    return trial


def large_page(folder: Path, monkeypatch: Any, tensors: int = 500, steps: int = 1000) -> str:
    """Return the page of a run with five pictures of so many rows and steps, all noise, which is the worst case."""
    random = np.random.default_rng(0)
    names = [f"Net_blocks.{number // 4}.attention.projection_{number % 4}.weight" for number in range(tensors)]
    grids = []
    for kind in KINDS[:4]:
        grid = Grid(kind, names, range(steps))
        grid.values = random.random((tensors, steps)) if kind.is_share else 10 ** random.normal(-2, 2, (tensors, steps))
        grids.append(grid)
    grids[0].values[random.random((tensors, steps)) < 0.01] = np.nan
    bad = Grid(NonFinite.kind, names, range(steps))
    bad.values = random.random((tensors, steps))
    trial = opened(folder)

    def much(*args: Any) -> Any:
        collected = collect(*args)
        collected.grids, collected.non_finite = grids, bad
        return collected

    monkeypatch.setattr("smd_agent.report.page.collect", much)
    return made_page(trial, judge(trial))


def browser_path() -> str:
    """Return a Chromium of this machine; skip the test, saying so, where there is none or no Playwright."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no test in a browser")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"there is no {', '.join(BROWSERS)}: no test in a browser")
    return found


class Shown:
    """A page in a browser.

    Attributes:
        tab: Playwright's page.
        errors: what the console has said, and errors that nobody has caught.
        requests: what was asked of any place but the file itself.
    """

    def __init__(self, tab: Any, file: Path) -> None:
        self.tab = tab
        self.errors: list[str] = []
        self.requests: list[str] = []
        tab.on("console", lambda message: self.errors.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        self.requests = [url for url in self.requests if url != file.as_uri() and not url.startswith("data:")]

    @property
    def ready_ms(self) -> float:
        """Milliseconds until the first picture stood."""
        return float(self.tab.evaluate("Number(document.documentElement.dataset.ready)"))

    def range_of(self, selector: str) -> list[float]:
        """The first and the last step that a picture shows."""
        shown = f"document.querySelector('{selector}').dataset"
        low, high = self.tab.evaluate(f"[{shown}.low, {shown}.high]")
        return [float(low), float(high)]

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true; Playwright's own way evaluates text, which the page forbids."""
        deadline = time.monotonic() + 20
        while not self.tab.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.tab.wait_for_timeout(20)

    def see(self, selector: str) -> None:
        """Scroll to a picture, and wait until it is painted."""
        self.tab.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
        self.tab.wait_for_selector(f"{selector}[data-low]", timeout=20_000)


@contextmanager
def shown(browser: Any, folder: Path, text: str, size: tuple[int, int] = DESK, **options: Any) -> Iterator[Shown]:
    """Show a page; ``options`` are those of a browser's context."""
    file = folder / "page.html"
    file.write_text(text, "utf-8")
    with browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **options) as context:
        yield Shown(context.new_page(), file)
