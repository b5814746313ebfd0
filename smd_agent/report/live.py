"""The page about a run that may go on: made anew when the run has changed, and not more often than it is worth."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent.formats import paths
from smd_agent.report.markup import element, joined
from smd_agent.storage.folders import change_time, names_in
from smd_agent.storage.state import describe_state

if TYPE_CHECKING:
    from collections.abc import Callable

# In seconds, and as a multiple of what making the page takes: then it may be made again.
_AGAIN_AFTER, _TIMES = 1.0, 4.0


class LivePage:
    """The page about a run.

    Args:
        folder: of the run, which need not be there yet.
        make: makes the HTML text; it is given the mark that the page is to carry.
    """

    def __init__(self, folder: str, make: Callable[[str], str]) -> None:
        self._root = Path(folder).expanduser()
        self._make = make
        self._turn = threading.Lock()
        self._mark = ""
        self._text = b""
        self._due = 0.0

    def mark(self) -> str:
        """Return a text that is another one where the page would be another one."""
        with self._turn:
            return self._newest()

    def text(self) -> bytes:
        """Return the page as it is by now."""
        with self._turn:
            mark = self._newest()
            if mark != self._mark:
                begun = time.monotonic()
                self._text = self._make(mark).encode()
                now = time.monotonic()
                self._mark, self._due = mark, now + max(_AGAIN_AFTER, _TIMES * (now - begun))
            return self._text

    def _newest(self) -> str:
        if self._mark and time.monotonic() < self._due:
            return self._mark
        index = self._root / paths.INDEX_FOLDER
        newest = max(names_in(index), default="")
        looked_at = [index, index / newest, self._root / paths.COLLECTIONS_FOLDER, self._root / paths.END_MARKER]
        times = ".".join(str(change_time(path) or 0) for path in looked_at)
        return f"{times}.{describe_state(self._root, None)}"


def waiting_page(why: str) -> str:
    """Return the page that stands for a run that cannot be opened yet; it asks again by itself."""
    policy = "default-src 'none'"
    head = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", http_equiv="refresh", content="2"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "waiting – smd_agent"),
    )
    body = (element("h1", "Waiting for the run"), element("p", f"{why}."))
    return f"<!doctype html>{joined([element('html', element('head', *head), element('body', *body), lang='en')])}"
