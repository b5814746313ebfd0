"""The kinds of values that the keys of a hook configuration take.

A kind is a function that turns a JSON value into ours and raises `InvalidValue` with the words for what is allowed.
Numbers and booleans may be strings, lists may be strings with commas: in the old system all were strings.
"""

from __future__ import annotations

import os
import re
from typing import Any

from smd_agent.config import env
from smd_agent.config.placeholders import ALLOWED, UnknownPlaceholder, fill_in
from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.core.reduction_config import CHOICES, ReductionConfig
from smd_agent.errors import SMDebugValueError
from smd_agent.formats.addresses import is_address, plain

# Far beyond any training, and exact as a floating-point number too.
LARGEST_STEP = 10**15
_MOST_DIGITS = 100
# Per cent.
_ALL = 100


ON_FIND = ("warn", "dump", "stop")


class InvalidValue(Exception):
    """A value is not of the kind; the argument says what is allowed."""


def boolean(value: Any) -> bool:
    """Accept true, false, 1, 0 and the words of `env.BOOLEAN_WORDS` in any case."""
    if isinstance(value, bool):
        return value
    word = env.BOOLEAN_WORDS.get(str(value).strip().lower()) if isinstance(value, (int, str)) else None
    if word is None:
        raise InvalidValue("true or false (also yes/no, on/off, 1/0, in any case)")
    return word


def count(value: Any) -> int:
    """Accept whole numbers from 1 to `LARGEST_STEP`."""
    return _whole(value, 1)


def step(value: Any) -> int:
    """Accept whole numbers from 0 to `LARGEST_STEP`."""
    return _whole(value, 0)


def per_cent(value: Any) -> float:
    """Accept a part in per cent, above 0 and up to 100, as a number or as text that may end with a per cent sign."""
    try:
        number = float(value.strip().removesuffix("%") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(value, bool) or not 0 < number <= _ALL:
        raise InvalidValue('a number above 0 and up to 100, in per cent, such as 0.5 or "2%"')
    return number / _ALL


def steps(value: Any) -> list[int]:
    """Accept whole numbers from 0 to `LARGEST_STEP`: one, a list, or a string with commas."""
    try:
        items = [value] if isinstance(value, (int, float)) else _items(value)
        return [_whole(item, 0) for item in items]
    except InvalidValue:
        raise InvalidValue('whole numbers from 0 to 10^15, as "3,7" or [3, 7]') from None


def names(value: Any) -> list[str]:
    """Accept names: a list, or a string with commas."""
    items = _items(value)
    if not all(isinstance(item, str) for item in items):
        raise InvalidValue('names, as "weights,biases" or ["weights", "biases"]')
    return [item.strip() for item in items]


def regexes(value: Any) -> list[str]:
    """Accept regular expressions: a list, or a string with commas; empty ones are left to the caller."""
    hint = ' (a string is split at commas; regexes that contain one go in a list: ["a{1,2}"])'
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidValue('regular expressions, as "relu,conv1" or ["relu", "conv1"]')
    if isinstance(value, str) and re.search(r"\{\d*,\d*\}", value):
        # The halves would compile, and match nothing.
        raise InvalidValue(f"regular expressions{hint}")
    for item in items:
        _check_regex(item, hint if isinstance(value, str) and len(items) > 1 else "")
    return items


def reductions(value: Any) -> list[str]:
    """Accept tokens of ReductionConfig: a list, or a string with commas."""
    try:
        return ReductionConfig.from_tokens(names(value)).to_tokens()
    except (SMDebugValueError, InvalidValue):
        raise InvalidValue(f"of {CHOICES} (l1_norm for l1 and so on)") from None


def workers(value: Any) -> str:
    """Accept "one" and "all"."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("one", "all"):
        raise InvalidValue('"one" or "all"')
    return word


def step_end(value: Any) -> str:
    """Accept "update" and "forward"."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("update", "forward"):
        raise InvalidValue('"update" or "forward"')
    return word


def on_find(value: Any) -> str:
    """Accept "warn", "dump" and "stop"."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ON_FIND:
        raise InvalidValue('"warn", "dump" or "stop"')
    return word


def actions(value: Any) -> list[dict[str, Any]]:
    """Accept actions: a list of objects with one key each; paths of files become absolute."""
    if not isinstance(value, list) or not all(map(_is_action, value)):
        raise InvalidValue(
            'a list of objects with one key each: {"command": ["program", "word"]}, {"shell": "text"},'
            ' {"webhook": "https://..."}, {"file": "path"} or {"sns": "arn:aws:sns:..."}'
        )
    return [{kind: folder(given) if kind == "file" else given for kind, given in one.items()} for one in value]


def _is_action(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    kind, given = next(iter(value.items()))
    if kind == "command":
        return isinstance(given, list) and bool(given) and all(isinstance(word, str) and word for word in given)
    if kind == "webhook":
        return isinstance(given, str) and given.startswith(("http://", "https://"))
    return kind in ("shell", "file", "sns") and isinstance(given, str) and bool(given.strip())


def text(value: Any) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("a string that is not empty")
    return value.strip()


def folder(value: Any) -> str:
    """Accept a path of the local file system; return it absolute, with `~` and placeholders replaced."""
    if not isinstance(value, str) or not value.strip() or not _is_path(value):
        raise InvalidValue("the path of a folder")
    if "://" in value:
        raise InvalidValue("a folder of this machine")
    return os.path.abspath(os.path.expanduser(_filled_in(value.strip())))


def _filled_in(text: str) -> str:
    try:
        return fill_in(text)
    except UnknownPlaceholder as unknown:
        name = str(unknown)
        raise InvalidValue(f"{ALLOWED} in the path of a folder, not {name}; {{{name}}} stands for {name}") from None


def place(value: Any) -> str:
    """Accept what ``folder`` accepts, and addresses such as ``s3://bucket/run``; these are returned as they are."""
    if isinstance(value, str) and is_address(value) and _is_path(value):
        if not plain(value).partition("://")[2]:
            raise InvalidValue("a folder, or an address such as s3://bucket/run")
        return plain(_filled_in(value))
    return folder(plain(value) if isinstance(value, str) else value)


def anything(value: Any) -> Any:
    """Accept whatever it is."""
    return value


def json_object(value: Any) -> dict[str, Any]:
    """Accept a JSON object."""
    if not isinstance(value, dict):
        raise InvalidValue("a JSON object ({...})")
    return value


def objects(value: Any) -> list[Any]:
    """Accept a list."""
    if not isinstance(value, list):
        raise InvalidValue("a list ([...])")
    return value


def _whole(value: Any, least: int) -> int:
    number = None
    if isinstance(value, str):
        digits = value.strip()
        number = int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not least <= number <= LARGEST_STEP:
        raise InvalidValue(f"a whole number from {least} to 10^15")
    return number


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _check_regex(regex: str, hint: str) -> None:
    try:
        name_pattern(regex)
    except UnfitPattern as error:
        raise InvalidValue(f"regular expressions{hint}; {error}") from error


def _items(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",")]
    if not isinstance(value, list):
        raise InvalidValue("a list, or a string with commas")
    return [item for item in value if item != ""]
