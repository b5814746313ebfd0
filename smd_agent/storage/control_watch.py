"""The watch for requests to a running training: a look at its folder once a second, on the writer thread.

A look asks the system when the folder ``control`` was changed last, and no more as long as that stays. The first worker
takes a request and writes down, as a plan, the training step at which it is obeyed: far enough ahead that the other
workers have read the plan by then. They need not talk to each other for it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from smd_agent.core.failure_domains import REQUESTS
from smd_agent.core.ports import Place
from smd_agent.core.requests import STOP, Answer, Requests
from smd_agent.errors import SMDebugError
from smd_agent.formats.paths import CONTROL_FOLDER, answer_path, claim_path, parse_request_file, request_path
from smd_agent.formats.requests import Posted, answer_text, request_text
from smd_agent.storage.atomic_file import names_in, remove_file, replace_file
from smd_agent.storage.claim import is_own
from smd_agent.storage.control_files import FIRST_WORKER, owner_of, owners_of, read_posted
from smd_agent.storage.writer_thread import Writer

LOOK_SECONDS = 1.0
# Two looks of another worker, and as much again for the file system between them.
AHEAD_SECONDS = 4.0
_FIRST_AHEAD = 2
_LOOKS_FOR_PACE = 3
# Some file systems tell times by the second: what was changed just now may change again unseen.
_RECENT_SECONDS = 3.0


class ControlWatch:
    """The watch of one worker.

    Args:
        root: gives the folder that this worker writes into, or would.
        folders: gives those that the first worker may have gone to instead.
    """

    def __init__(self, root: Callable[[], Path], folders: Callable[[], Iterator[Path]]) -> None:
        self._root = root
        self._folders = folders
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything, in a process that a fork has made."""
        self._requests: Requests | None = None
        self._place = Place(0, 1, 1)
        self._seen: tuple[Path, int] | None = None
        self._done: set[str] = set()
        # A moment, and the training step at it.
        self._before = (0.0, -1)
        self._seconds_per_step = math.inf
        self._looks = 0

    def listen(self, requests: Requests | None, writer: Writer, place: Place) -> None:
        """Look for requests to this worker, on the thread of this writer, or end the thread."""
        if requests is None:
            writer.close()
            self.begin_anew()
            return
        if self._requests is requests and self._place == place:
            return
        self._requests, self._place = requests, place
        requests.answer = lambda answer: writer.submit(partial(self._write_answer, answer))
        writer.watch(self.look, LOOK_SECONDS)

    @REQUESTS.fence("looking for requests")
    def look(self) -> None:
        """Take the requests that have come."""
        requests = self._requests
        if requests is None:
            return
        self._rate(requests.step)
        root = self._root_of_first()
        try:
            changed = os.stat(root / CONTROL_FOLDER).st_mtime_ns
        except OSError:
            return
        if (root, changed) == self._seen:
            return
        if time.time() - changed / 1e9 > _RECENT_SECONDS:
            self._seen = root, changed
        for file in sorted(names_in(root, CONTROL_FOLDER)):
            found = parse_request_file(file)
            if found is None or found[0] in self._done:
                continue
            if found[1] == "plan" and not self._is_first:
                self._follow(root, found[0], requests)
            elif found[1] == "request" and self._is_first:
                self._plan(root, found[0], requests)

    def _rate(self, step: int) -> None:
        now = time.monotonic()
        self._looks += 1
        moment, before = self._before
        if step > before and before >= 0:
            self._seconds_per_step = (now - moment) / (step - before)
        if step != before:
            self._before = now, step

    @property
    def _is_first(self) -> bool:
        return self._place.rank == 0 or self._place.size == 1

    def _root_of_first(self) -> Path:
        """The folder that the first worker writes into."""
        found = self._root()
        if self._is_first:
            return found
        newest = -1
        for folder in self._folders():
            try:
                signed = os.stat(folder / claim_path(FIRST_WORKER)).st_mtime_ns
            except OSError:
                continue
            if signed > newest:
                found, newest = folder, signed
        return found

    def _plan(self, root: Path, name: str, requests: Requests) -> None:
        size = self._place.size
        if size > 1 and self._looks < _LOOKS_FOR_PACE:
            self._seen = None
            return
        self._done.add(name)
        try:
            posted = read_posted(root, name, "request")
        except (SMDebugError, OSError) as error:
            remove_file(root, request_path(name, "request"))
            self._write_answer(Answer(name, False, str(error)))
            return
        if posted is None:
            return
        own = {owner.get("mark") for owner in owners_of(root) if is_own(owner)}
        if posted.run not in own:
            remove_file(root, request_path(name, "request"))
            self._write_answer(Answer(name, False, "it was meant for an earlier run in this folder"))
            return
        request = posted.request
        if size > 1:
            ahead = _FIRST_AHEAD + math.ceil(AHEAD_SECONDS / max(self._seconds_per_step, 1e-6))
            request = replace(request, at=max(request.at, requests.step + ahead), fixed=True)
        plan = Posted(request, posted.run, size if request.action == STOP else self._place.writers)
        replace_file(root, request_path(name, "plan"), request_text(plan).encode())
        remove_file(root, request_path(name, "request"))
        requests.take(request)

    def _follow(self, root: Path, name: str, requests: Requests) -> None:
        self._done.add(name)
        try:
            posted = read_posted(root, name, "plan")
        except (SMDebugError, OSError):
            return
        first = owner_of(root, FIRST_WORKER)
        if posted is None or first is None or posted.run != first.get("mark"):
            return
        # Who writes nothing stops with the others, and there is nothing else to be done.
        if posted.request.action == STOP or self._place.rank < self._place.writers:
            requests.take(posted.request)

    @REQUESTS.fence("answering")
    def _write_answer(self, answer: Answer) -> None:
        worker = f"worker_{self._place.rank}"
        replace_file(self._root_of_first(), answer_path(answer.name, worker), answer_text(answer, worker).encode())
