"""Reads the text of a hook configuration into a JSON object, and says where it is wrong when it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smd_agent.errors import ConfigError
from smd_agent.regular_file import read_text

_LARGEST_BYTES = 64 << 20


@dataclass(frozen=True)
class Source:
    """Where a hook configuration is: in a file, or in a text that somebody handed over.

    name: how messages call it; a path, or the name of the variable that holds the text.
    text: the configuration itself; None means it is the content of the file `name`.
    origin: what named the file, for the message that it is missing.
    """

    name: str
    text: str | None = None
    origin: str | None = None


def read_object(source: Source) -> tuple[dict[str, Any], list[str]]:
    """Return the configuration's JSON object and the keys that stand twice in one of its objects.

    Raises ConfigError naming the file, and line and column where the JSON breaks off.
    """
    import json

    twice: list[str] = []

    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.extend(key for key in content if keys.count(key) > 1)
        return content

    try:
        content = json.loads(_text(source), object_pairs_hook=to_dict)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{source.name} is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{source.name} is not a hook configuration: it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{source.name} holds {shown(content)}, allowed is a JSON object ({{...}})")
    return content, twice


def shown(value: object) -> str:
    """Return a value as it stands in JSON, cut to a length that fits in a sentence."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _text(source: Source) -> str:
    if source.text is not None:
        return source.text
    try:
        return read_text(source.name, encoding="utf-8-sig", largest=_LARGEST_BYTES)
    except FileNotFoundError as error:
        named = f", which {source.origin} names," if source.origin else ""
        raise ConfigError(f"the hook configuration {source.name}{named} does not exist") from error
    except OSError as error:
        raise ConfigError(f"the hook configuration {source.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the hook configuration {source.name} is not UTF-8: {error.reason}") from error
