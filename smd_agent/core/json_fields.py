"""Checks of JSON objects that are read back, and the sentence for what stands there instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smd_agent.errors import SMDebugValueError
from smd_agent.printable import shortened


def object_in(text: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object that a text is, whoever wrote it; None if it is none."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def as_object(value: object, what: str) -> Mapping[Any, Any]:
    """Return a JSON object.

    Raises:
        SMDebugValueError: it is something else; ``what`` is its name.
    """
    if not isinstance(value, Mapping):
        raise _unfit(what, value, "a JSON object")
    return value


def as_texts(value: object, what: str) -> list[str]:
    """Return a list of texts; None is an empty one.

    Raises:
        SMDebugValueError: it is something else; ``what`` is its name.
    """
    texts = [] if value is None else value
    if not isinstance(texts, (list, tuple, set)) or not all(isinstance(text, str) for text in texts):
        raise _unfit(what, value, "a list of texts")
    return list(texts)


def as_count(value: object, what: str) -> int:
    """Return a whole number from 1 up.

    Raises:
        SMDebugValueError: it is something else; ``what`` is its name.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _unfit(what, value, "a whole number from 1 up")
    return value


def _unfit(what: str, value: object, allowed: str) -> SMDebugValueError:
    return SMDebugValueError(f"{what} is {shortened(repr(value), 60)}, allowed is {allowed}")
