"""A store that speaks S3 on this machine, and a way to it that is slow, refuses, drops or never answers."""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from logging import getLogger
from pathlib import Path
from typing import Any

from harness.written_runs import started
from smd_agent.storage.destination import Destination
from smd_agent.storage.run_writer import RunWriter

BUCKET = "bucket"
# What a user of a store has set up.
ACCESS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


class Faults:
    """What the way to the store does to requests.

    Attributes:
        seconds: that each one waits.
        refuse: so many are answered with 503.
        drop: the connections of so many are closed without an answer.
        hangs: none is answered.
        only: the others pass if this is not in their method and path.
        seen: method and path of each, in order, when it was passed on.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.refuse = self.drop = 0
        self.hangs = False
        self.only = ""
        self.seen: list[str] = []
        self.released = threading.Event()
        self.lock = threading.Lock()

    def take(self, name: str) -> bool:
        """Whether a fault of this kind is due, which is one less then."""
        with self.lock:
            left = getattr(self, name)
            setattr(self, name, max(left - 1, 0))
        return left > 0


class _Way(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: Faults
    store: tuple[str, int]

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def _pass(self) -> None:
        body = self._body()
        faults, what = self.faults, f"{self.command} {self.path}"
        if faults.only in what:
            if faults.hangs:
                faults.released.wait()
                self.close_connection = True
                return
            time.sleep(faults.seconds)
            if faults.take("drop"):
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if faults.take("refuse"):
                self._answer(503, {}, b"<Error><Code>ServiceUnavailable</Code></Error>")
                return
        connection = http.client.HTTPConnection(*self.store)
        headers = {name: text for name, text in self.headers.items() if name.lower() != "content-length"}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        faults.seen.append(what)
        self._answer(answer.status, dict(answer.getheaders()), content)
        connection.close()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response_only(status)
        length = headers.get("Content-Length", str(len(content))) if self.command == "HEAD" else str(len(content))
        for name, text in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, text)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class StoreServer:
    """The store and the way to it.

    Attributes:
        faults: of the way.
        url: of the way.
        variables: of a user's environment, with what the store's clients need.
    """

    def __init__(self, store: tuple[str, int]) -> None:
        self.faults = Faults()
        self._handler = type("Way", (_Way,), {"faults": self.faults, "store": store})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        self._server.daemon_threads = True
        # By its name, so that names are looked up as they are elsewhere.
        self.url = f"http://localhost:{self._server.server_port}"
        self.variables = {**ACCESS, "AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def heal(self) -> None:
        """Have no fault any more, and forget what was seen."""
        released = self.faults.released
        released.set()
        self.faults.__init__()

    def close(self) -> None:
        self.faults.released.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def store_server() -> Iterator[StoreServer]:
    """Run a store with an empty bucket; its variables are set here, too."""
    from moto.server import ThreadedMotoServer

    getLogger("werkzeug").setLevel("ERROR")
    moto = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    moto.start()
    server = StoreServer(moto.get_host_and_port())
    before = {name: os.environ.get(name) for name in server.variables}
    os.environ.update(server.variables)
    try:
        with suppress(FileExistsError):
            # An earlier one of this process has left it.
            files().mkdir(BUCKET)
        yield server
    finally:
        for name, text in before.items():
            os.environ.pop(name) if text is None else os.environ.__setitem__(name, text)
        server.close()
        moto.stop()


def files() -> Any:
    """The store's files as fsspec shows them, each time as they are."""
    import fsspec

    return fsspec.filesystem("s3", use_listings_cache=False, skip_instance_cache=True)


def contents(address: str) -> dict[str, bytes]:
    """The files below an address: names below it, and bytes."""
    store = files()
    root = address.removeprefix("s3://")
    return {path[len(root) + 1 :]: store.cat_file(path) for path in store.find(root)}


def stored(address: str, upload_to: str | None = None, patience: float = 30.0, **options: Any) -> RunWriter:
    """Return the writer of a run that has begun: see ``Destination.of``, and ``started``."""
    place = Destination.of(address, upload_to, patience)
    return started(Path(place.folder), uploads=place.uploads, **options)
