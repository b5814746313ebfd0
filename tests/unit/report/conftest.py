"""One browser for all tests of the page."""

from __future__ import annotations

import pytest
from harness.pages import ARGUMENTS, browser_path


@pytest.fixture(scope="session")
def browser():
    """A Chromium; the test is skipped where there is none."""
    path = browser_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS])
        yield started
        started.close()
