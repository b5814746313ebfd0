"""The hook file: where it is looked for, and the JSON object in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

from smd_agent.config import env
from smd_agent.errors import ConfigError
from smd_agent.printable import printable, shortened
from smd_agent.regular_file import read_text
from smd_agent.stalled_disk import in_time

_LARGEST_BYTES = 4 << 20
# Python refuses to read much longer ones; that would be told of the whole file, and not of the key.
_MOST_DIGITS = 100
_LONGEST_VALUE = 60


@dataclass(frozen=True)
class Source:
    """The place of a hook configuration: a file, or a text that somebody handed over.

    name: how messages call it; a path, or the name of the variable that holds the text.
    text: the configuration itself; None means it is the content of the file `name`.
    origin: what named the file, for the message that it is missing.
    kind: what the file is, for messages.
    """

    name: str
    text: str | None = None
    origin: str | None = None
    kind: str = "hook configuration"


def find_source() -> Source | None:
    """Return where this process is told what to capture, None if nowhere.

    The launcher's variable comes first, then the hook file's, then the standard place if a file is there.
    """
    inline = env.hook_json()
    if inline is not None:
        # Who has typed options knows nothing of the variable that carries them to the program.
        return Source(env.HOOK if env.launch_pid() is None else "the options", text=inline)
    path = env.config_path()
    if path is not None:
        return Source(path, origin=env.CONFIG_PATH)
    return Source(env.DEFAULT_CONFIG_PATH) if os.path.isfile(env.DEFAULT_CONFIG_PATH) else None


def is_there(source: Source) -> bool:
    """True if there is a configuration at the place.

    Raises ConfigError when the disk does not say so in time.
    """
    try:
        return source.text is not None or in_time(partial(os.path.exists, source.name))
    except TimeoutError as error:
        raise _unreadable(source, error) from error


def read_object(source: Source) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration's JSON object and the keys that stand twice in one of its objects.

    Raises ConfigError naming the file, and line and column where the JSON breaks off.
    """
    import json

    twice: list[str] = []
    name = printable(source.name)

    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            left = dict.fromkeys(content, True)
            twice.extend(dict.fromkeys(key for key, _ in pairs if not left.pop(key, False)))
        return content

    try:
        content = json.loads(_text(source), object_pairs_hook=to_dict, parse_int=_whole_or_text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{name} is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{name} is not a {source.kind}: it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{name} holds {shown(content)}, allowed is a JSON object ({{...}})")
    return content, twice


def shown(value: object) -> str:
    """Return a value as it stands in JSON, cut to a length that fits in a sentence."""
    import json

    try:
        return shortened(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
    except RecursionError:
        return "a value nested too deeply"


def _whole_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _text(source: Source) -> str:
    if source.text is not None:
        return source.text
    name = printable(source.name)
    try:
        return in_time(partial(read_text, source.name, encoding="utf-8-sig", largest=_LARGEST_BYTES))
    except FileNotFoundError as error:
        named = f", which {source.origin} names," if source.origin else ""
        raise ConfigError(f"the {source.kind} {name}{named} does not exist") from error
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Source, error: OSError) -> ConfigError:
    return ConfigError(f"the {source.kind} {printable(source.name)} cannot be read: {error.strerror}")
