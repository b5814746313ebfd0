"""The files by which a running training is asked for something, below ``control`` in the folder of its run.

Only who can write into that folder can ask. A request names the process that it is meant for by the mark in its claim
file, so that a later run in the same folder does not obey it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from smd_agent.core.requests import STOP, Answer, Request, checked
from smd_agent.errors import SMDebugError, SMDebugRuntimeError
from smd_agent.formats.paths import ANSWERS_FOLDER, claim_path, request_path
from smd_agent.formats.requests import LARGEST_BYTES, Posted, answer_in, posted_in, request_text
from smd_agent.regular_file import read_text
from smd_agent.storage.atomic_file import names_in, replace_file
from smd_agent.storage.claim import is_gone, owner_in, owner_text

FIRST_WORKER = "worker_0"


def owners_of(root: Path) -> list[dict[str, object]]:
    """Whoever the claim files of a run, or of its first worker, name."""
    found = (owner_of(root, worker) for worker in (None, FIRST_WORKER))
    return [owner for owner in found if owner is not None]


def owner_of(root: Path, worker: str | None) -> dict[str, object] | None:
    """Whoever the claim file of a run, or of one of its several workers, names; None for nobody."""
    try:
        return owner_in(read_text(root / claim_path(worker), largest=LARGEST_BYTES))
    except (OSError, ValueError):
        return None


def writer_of(root: Path) -> dict[str, object]:
    """The process that writes the run in a folder: pid, host and mark.

    Raises:
        SMDebugRuntimeError: none does; one sentence says so.
    """
    owners = owners_of(root)
    alive = [owner for owner in owners if not is_gone(owner) and isinstance(owner.get("mark"), str)]
    if alive:
        return alive[0]
    if owners:
        raise SMDebugRuntimeError(f"nobody writes to {root}: {owner_text(owners[0])} is gone")
    raise SMDebugRuntimeError(f"nobody writes to {root}: the run has ended, or has not begun to save")


def post(root: Path, action: str, **given: object) -> str:
    """Ask the process that writes a run for something; the name of the request.

    Args:
        root: the run's folder.
        action: see ``core.requests``.
        given: further attributes of the ``Request``.

    Raises:
        SMDebugError: nobody writes the run, or the request makes no sense.
        OSError: the request cannot be written.
    """
    name = f"{time.time_ns() // 1000:016d}-{os.urandom(3).hex()}"
    request = checked(Request(name, action, **given))  # type: ignore[arg-type]
    posted = Posted(request, str(writer_of(root)["mark"]))
    replace_file(root, request_path(name, "request"), request_text(posted).encode())
    return name


def request_stop(
    run_folder: str | os.PathLike[str], why: str, at_step: int | None = None, asked_by: str = "tap"
) -> str:
    """Ask a running training to end before the update of a step; the name of the request.

    Args:
        run_folder: of its run.
        why: in words, for the line that it ends with.
        at_step: the training step, or the first one after it at which all workers can; the next possible one if None.
        asked_by: who asks, for that line.

    Raises:
        SMDebugError: nobody writes the run, or the request makes no sense.
        OSError: the request cannot be written.
    """
    return post(Path(run_folder), STOP, why=why, at=max(at_step or 0, 0), asked_by=asked_by)


def read_posted(root: Path, name: str, kind: str) -> Posted | None:
    """The request or plan of this name; None where there is none.

    Raises:
        SMDebugValueError: the file holds something else.
    """
    try:
        text = read_text(root / request_path(name, kind), largest=LARGEST_BYTES)
    except FileNotFoundError:
        return None
    return posted_in(name, text)


def planned(root: Path, name: str) -> Posted | None:
    """The plan that the first worker has made of a request; None if it has not, or nothing can be read."""
    try:
        return read_posted(root, name, "plan")
    except (OSError, SMDebugError):
        return None


def answers_to(root: Path, name: str) -> dict[str, Answer]:
    """The answers to a request by worker."""
    found: dict[str, Answer] = {}
    for file in names_in(root, ANSWERS_FOLDER):
        if not (file.startswith(f"{name}_") and file.endswith(".json")):
            continue
        try:
            answer = answer_in(read_text(root / ANSWERS_FOLDER / file, largest=LARGEST_BYTES))
        except (OSError, ValueError):
            continue
        if answer is not None:
            found[answer[0]] = answer[1]
    return found
