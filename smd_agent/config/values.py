"""One object of a hook configuration, and the kinds of values its keys take.

A kind is a function that turns a JSON value into ours and raises `InvalidValue` with the words for what is allowed.
Numbers and booleans may be strings, lists may be strings with commas: in the old system all were strings.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeVar

from smd_agent.config import env
from smd_agent.config.json_file import shown
from smd_agent.core.reduction_config import TOKENS, ReductionConfig
from smd_agent.errors import ConfigError, SMDebugValueError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class InvalidValue(Exception):
    """A value is not of the kind; the argument says what is allowed."""


class Section:
    """An object of the file whose keys are taken out one by one, so that what is left over is unknown.

    path: how messages call it, with the dot or bracket a key is appended to.
    """

    def __init__(self, file: str, path: str, content: object, warnings: list[str]) -> None:
        if not isinstance(content, dict):
            where = path.rstrip(".")
            raise ConfigError(f"{file}: {where} is {shown(content)}, allowed is a JSON object ({{...}})")
        self.file = file
        self.path = path
        self._left: dict[str, Any] = dict(content)
        self._taken: list[str] = []
        self._warnings = warnings

    def take(self, key: str, kind: Callable[[Any], T]) -> T | None:
        """Return the key's value as `kind` makes it; None when it is missing or null."""
        self._taken.append(key)
        value = self._left.pop(key, None)
        if value is None:
            return None
        try:
            return kind(value)
        except InvalidValue as unfit:
            found = f"{self.path}{key} is {shown(value)}"
            raise ConfigError(f"{self.file}: {found}, allowed is {unfit}") from None

    def section(self, key: str) -> Section:
        """Return the object under a key; missing and null are an empty one."""
        return Section(self.file, f"{self.path}{key}.", self.take(key, json_object) or {}, self._warnings)

    def item(self, key: str, number: int, content: object) -> Section:
        """Return an object out of the list that stands under a key."""
        return Section(self.file, f"{self.path}{key}[{number}].", content, self._warnings)

    def lower_prefixes(self, prefixes: tuple[str, ...]) -> None:
        """Write the part before a key's first dot in lower case if that makes it one of the prefixes."""
        for key in list(self._left):
            prefix, dot, rest = key.partition(".")
            if dot and prefix != prefix.lower() and prefix.lower() in prefixes:
                self._left.setdefault(f"{prefix.lower()}.{rest}", self._left.pop(key))

    def warn(self, sentence: str) -> None:
        """Add a sentence for the user, which the file's name is put before."""
        self._warnings.append(f"{self.file}: {sentence}")

    def warn_unknown(self) -> None:
        """Warn of every key that was not taken, with the nearest one that could have been."""
        for key in self._left:
            self.warn(f"the key {self.path}{key} is unknown and ignored{nearest(key, self._taken)}")


def nearest(word: str, known: list[str]) -> str:
    """Return `; did you mean x?` for the known word that is most like this one, else an empty string."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[found[0]]}?" if found else ""


def boolean(value: Any) -> bool:
    """Accept true, false, 1, 0 and the words of `env.BOOLEAN_WORDS` in any case."""
    if isinstance(value, bool):
        return value
    word = env.BOOLEAN_WORDS.get(str(value).strip().lower()) if isinstance(value, (int, str)) else None
    if word is None:
        raise InvalidValue("true or false (also yes/no, on/off, 1/0, in any case)")
    return word


def count(value: Any) -> int:
    """Accept whole numbers from 1 up."""
    return _whole(value, 1)


def step(value: Any) -> int:
    """Accept whole numbers from 0 up."""
    return _whole(value, 0)


def steps(value: Any) -> list[int]:
    """Accept whole numbers from 0 up: one, a list, or a string with commas."""
    try:
        items = [value] if isinstance(value, (int, float)) else _items(value)
        return [_whole(item, 0) for item in items]
    except InvalidValue:
        raise InvalidValue('whole numbers of at least 0, as "3,7" or [3, 7]') from None


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
        raise InvalidValue(f"of {', '.join(TOKENS)} (l1_norm for l1 and so on)") from None


def workers(value: Any) -> str:
    """Accept "one" and "all"."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("one", "all"):
        raise InvalidValue('"one" or "all"')
    return word


def text(value: Any) -> str:
    """Accept a string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("a string that is not empty")
    return value.strip()


def folder(value: Any) -> str:
    """Accept a path of the local file system; return it absolute, with `~` replaced."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidValue("the path of a folder")
    if "://" in value:
        raise InvalidValue("a local folder (this version writes to local folders only)")
    return os.path.abspath(os.path.expanduser(value.strip()))


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
        number = int(digits) if digits.isdecimal() and len(digits) < 19 else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or number < least:
        raise InvalidValue(f"a whole number of at least {least}")
    return number


def _check_regex(regex: str, hint: str) -> None:
    try:
        re.compile(regex)
    except re.error as error:
        raise InvalidValue(f"regular expressions{hint}; {regex!r} is none: {error}") from error


def _items(value: Any) -> list[Any]:
    if isinstance(value, str):
        value = [item.strip() for item in value.split(",")]
    if not isinstance(value, list):
        raise InvalidValue("a list, or a string with commas")
    return [item for item in value if item != ""]
