"""A server of one page about a run that may go on, for the browser of this machine.

The page is made anew when the run has changed, and not more often than it is worth. Who does not know its address is
refused: it listens on 127.0.0.1 only. The address has a secret word, which other users and programs of the machine
cannot guess; and the name that a browser has called it by must be this machine's, so that no site can have its own name
lead here.
"""

from __future__ import annotations

import hmac
import secrets
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from smd_agent.formats import paths
from smd_agent.report.html_elements import element, joined
from smd_agent.storage.claim import describe_state
from smd_agent.storage.index_files import change_time, names_in

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


_HOST = "127.0.0.1"
_NAMES = (_HOST, "localhost")
# In seconds: whoever connects and asks for nothing is let go.
_PATIENCE = 10
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageServer(ThreadingHTTPServer):
    """Serves a page on a free port; ``serve_forever`` does it until the program is interrupted.

    Args:
        page: is asked for its text, and for its mark by pages that want to know whether it is another one now.
    """

    daemon_threads = True
    # A browser's connections are not waited for.
    block_on_close = False

    def __init__(self, page: LivePage) -> None:
        self.page = page
        self.word = secrets.token_urlsafe(24)
        super().__init__((_HOST, 0), _Handler)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """The address of the page; whoever knows it may read it."""
        return f"http://{_HOST}:{self.port}/{self.word}/"

    def server_bind(self) -> None:
        """Take the port; the usual way asks the network for this machine's name, which nobody needs."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _HOST, self.port

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless the browser has only gone."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "smd_agent", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the lines would have the secret word."""

    def _answer(self, with_body: bool) -> None:
        status, kind, body = self._found()
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _found(self) -> tuple[HTTPStatus, str, bytes]:
        server = cast("PageServer", self.server)
        _, _, rest = self.path.partition("/")
        word, slash, name = rest.partition("/")
        is_known = hmac.compare_digest(word.encode(errors="replace"), server.word.encode())
        if not is_known or self.headers.get("Host") not in [f"{known}:{server.port}" for known in _NAMES]:
            return HTTPStatus.FORBIDDEN, "text/plain", b"The address is not right: smd_agent has printed it.\n"
        texts: dict[str, tuple[str, Callable[[], bytes]]] = {
            "": ("text/html", server.page.text),
            "mark": ("text/plain", lambda: server.page.mark().encode()),
        }
        if not slash or name not in texts:
            return HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing else here.\n"
        kind, made = texts[name]
        return HTTPStatus.OK, kind, made()
