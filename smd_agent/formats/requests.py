"""Requests to a running training and answers to them as the text of small JSON files, which hold data alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from smd_agent.core.json_fields import object_in
from smd_agent.core.requests import Answer, Request, checked
from smd_agent.errors import SMDebugValueError
from smd_agent.printable import shortened

LARGEST_BYTES = 1 << 16
_MOST_NAMES, _LONGEST_TEXT = 100, 1000
_KINDS = {
    "str": (str, f"a text of at most {_LONGEST_TEXT} characters"),
    "int": (int, "a whole number"),
    "bool": (bool, "true or false"),
}


class Posted(NamedTuple):
    """A request as it stands in a file.

    request: the same.
    run: the mark of the process that it is meant for.
    workers: how many workers obey it; 0 until one has taken it.
    """

    request: Request
    run: str
    workers: int = 0


def request_text(posted: Posted) -> str:
    """The text of a request's file."""
    return json.dumps({**asdict(posted.request), "run": posted.run, "workers": posted.workers})


def posted_in(name: str, text: str) -> Posted:
    """The request of this name in the text of a file, whoever wrote it.

    Raises:
        SMDebugValueError: it is none; one sentence says why.
    """
    found = object_in(text)
    if found is None:
        raise SMDebugValueError("the request is no JSON object")
    run, workers = found.pop("run", None), found.pop("workers", 0)
    if not isinstance(run, str) or type(workers) is not int:
        raise SMDebugValueError("the request does not say which run it is for")
    found["name"] = name
    names = {one.name: str(one.type) for one in fields(Request)}
    unknown = sorted(found.keys() - names.keys())
    if unknown:
        raise SMDebugValueError(f"the key {shortened(unknown[0], 60)} is unknown; there are {', '.join(names)}")
    given = {key: _fitting(key, names[key], value) for key, value in found.items()}
    if "action" not in given:
        raise SMDebugValueError("action is missing")
    return Posted(checked(Request(**given)), run, workers)


def answer_text(answer: Answer, worker: str) -> str:
    """The text of the file of a worker's answer."""
    result = "obeyed" if answer.obeyed else "refused"
    said = {"request": answer.name, "worker": worker, "result": result, "text": answer.text}
    return json.dumps({**said, "step": answer.step, "saved": answer.saved})


def answer_in(text: str) -> tuple[str, Answer] | None:
    """Worker and answer in the text of a file; None where it is none."""
    found: Mapping[str, Any] | None = object_in(text)
    if found is None or not all(isinstance(found.get(key), str) for key in ("request", "worker", "result", "text")):
        return None
    numbers = [found.get(key) for key in ("step", "saved")]
    step, saved = (one if type(one) is int else -1 for one in numbers)
    return found["worker"], Answer(found["request"], found["result"] == "obeyed", found["text"], step, saved)


def _fitting(key: str, kind: str, value: object) -> Any:
    expected, words = _KINDS.get(kind, (list, f"a list of at most {_MOST_NAMES} texts"))
    fits = type(value) is expected
    if isinstance(value, str):
        fits = fits and len(value) <= _LONGEST_TEXT
    elif isinstance(value, list):
        fits = fits and len(value) <= _MOST_NAMES and all(isinstance(one, str) for one in value)
    if not fits:
        raise SMDebugValueError(f"{key} is {shortened(repr(value), 60)}, allowed is {words}")
    return tuple(value) if isinstance(value, list) else value
