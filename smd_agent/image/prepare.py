"""Preparing this Python: start-up files where there are none that work, and byte code; and taking them away again."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

import smd_agent
from smd_agent.image import byte_code, start_files
from smd_agent.image.probe import look
from smd_agent.image.record import NAME, Record


@dataclass
class Prepared:
    """What preparing has come to.

    Attributes:
        written: start-up files.
        compiled: how many files have got byte code.
        problem: what could not be done, and why; empty if all was.
    """

    written: list[Path] = field(default_factory=list)
    compiled: int = 0
    problem: str = ""


def prepare() -> Prepared:
    """Have this Python start the agent without any variable but that which asks for it, and have byte code for that."""
    done = Prepared()
    starts = look(by_path=False).armed
    uncompiled = [source for source in byte_code.sources() if not byte_code.is_compiled(source)]
    if starts and not uncompiled:
        return done
    record, refusal = _begun()
    if record is None:
        what = "byte code cannot be written" if starts else f"{start_files.PTH} cannot be written"
        done.problem = f"{what}: {refusal}"
        return done
    compiled = byte_code.compile_all(uncompiled)
    record.note(compiled.files, compiled.folders)
    done.compiled = len(compiled.files)
    if compiled.problem:
        done.problem = f"byte code cannot be written ({compiled.problem})"
    if not starts:
        _write_start_files(record, done)
    if record.files:
        record.save()
    else:
        record.take_away()
    return done


def _begun() -> tuple[Record | None, str]:
    """A record in the first site folder that can be written to; None and the reason if there is none."""
    first = sysconfig.get_path("purelib")
    refusals = []
    for folder in sorted(start_files.site_folders(), key=lambda one: one != first):
        try:
            record = Record(Path(folder))
            record.begin()
        except (OSError, ValueError, KeyError, TypeError) as error:
            refusals.append(f"{getattr(error, 'strerror', None) or error}: {folder}")
            continue
        return record, ""
    return None, "; ".join(refusals)


def _write_start_files(record: Record, done: Prepared) -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(smd_agent.__file__)))
    files = {start_files.PTH: start_files.text_of(root), start_files.START: start_files.START_TEXT}
    for name in files:
        path = record.folder / name
        if os.path.lexists(path) and not record.owns(path):
            done.problem = f"{path} is there already, but the agent is not started by it: remove it, and try again"
            return
    try:
        for name, text in files.items():
            done.written.append(record.write(name, text))
    except OSError as error:
        done.problem = f"{start_files.PTH} cannot be written ({error.strerror or error}: {record.folder})"


def take_away() -> tuple[list[str], list[str], str]:
    """Remove what `prepare` has written for this Python; return that, what others have changed, and what went wrong."""
    removed: list[str] = []
    left: list[str] = []
    problem = ""
    for folder in start_files.site_folders():
        if not os.path.lexists(os.path.join(folder, NAME)):
            continue
        try:
            gone, kept = Record(Path(folder)).take_away()
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"what {os.path.join(folder, NAME)} lists cannot be removed ({error})"
            continue
        removed += gone
        left += kept
    return removed, left, problem
