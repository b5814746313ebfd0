"""Small harm to bytes and to JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

Path = tuple[Any, ...]

INSERTED = (
    b"[" * 50_000,
    b'{"a":' * 2000,
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\0" * 100,
    b"\xff" * 12,
    b"9" * 5000,
    b"1e99999",
    b"NaN",
    b"\\ud800",
    b"-" * 1000,
    b"//c\n",
    b"\xed\xa0\x80",
)


def harmed_bytes(random: Random, content: bytes) -> bytes:
    """Return the bytes with some of them changed, removed or added; half of the places are near the start."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 6)):
        last = len(changed) if random.random() < 0.6 else min(len(changed), 400)
        place = random.randint(0, last)
        kind = random.random()
        if kind < 0.45:
            changed[place : place + 1] = bytes([random.randrange(256)])
        elif kind < 0.55:
            del changed[place:]
        elif kind < 0.7:
            del changed[place : place + random.randint(1, 30)]
        elif kind < 0.85:
            changed[place:place] = random.randbytes(random.randint(1, 12))
        else:
            changed[place:place] = random.choice(INSERTED)
    return bytes(changed)


def harmed_json(random: Random, content: Any, values: Sequence[Any], keys: Sequence[str]) -> Any:
    """Return JSON content with some of its values replaced, removed, doubled or wrapped, and keys added."""
    changed = copy.deepcopy(content)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = [path for path in _paths(changed) if path]
        if not places:
            break
        path = random.choice(places)
        owner = changed
        for step in path[:-1]:
            owner = owner[step]
        _harm_at(random, owner, path[-1], values, keys)
    return copy.deepcopy(random.choice(values)) if random.random() < 0.03 else changed


def _harm_at(random: Random, owner: Any, place: Any, values: Sequence[Any], keys: Sequence[str]) -> None:
    kind = random.random()
    value = copy.deepcopy(random.choice(values))
    if kind < 0.55:
        owner[place] = value
    elif kind < 0.7:
        if isinstance(owner, dict):
            owner[random.choice(keys)] = value
        else:
            owner.append(value)
    elif kind < 0.85:
        del owner[place]
    else:
        old = owner[place]
        owner[place] = random.choice(([old], {"x": old}, str(old), [old, old], [old] * 100))


def _paths(content: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    if isinstance(content, (dict, list)):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from _paths(content[key], (*path, key))


def nested(random: Random, depth: int) -> Any:
    """Return lists and objects inside of each other."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def text_of(random: Random, content: Any) -> bytes:
    """Return JSON content as bytes, in one of the spellings that there are; lone surrogates stay as they are."""
    return json.dumps(content, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
