"""A cache of all index files of a run, in one file: a run of ten thousand steps is opened by reading that.

::

    16 bytes    "smd_agent index" and the number of this layout
     4 bytes    crc32c of everything after them
     2 x 8      size of the head in bytes, how many lengths there are
    head        JSON: {"names": [[str, ...], ...], "shapes": [shape_payload, ...],
                       "payloads": [[number of its names, number of its shapes, 0 or 1], ...],
                       "files": [[path, changed, size, meta, number of its payload], ...]}
    lengths     u32, one for each record, payload by payload
    starts      i64, likewise; a payload with 0 has none: its records lie one after the other from byte 0 on

Numbers are little-endian; ``meta`` and ``shape_payload`` are those of an index file. What is read is checked as an
index file is: somebody else may have written it.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.errors import IndexReaderException
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.index import Index, IndexParser, Payload, read_index, read_shapes, shape_payload
from smd_agent.formats.index_checks import LARGEST_FILE, LARGEST_RECORD
from smd_agent.formats.tfrecord import FRAME_BYTES

Signature = tuple[int, int]
"""When a file was changed, in ns since the epoch, and its size in bytes."""

_MAGIC = b"smd_agent index\x02"
_SIZES = struct.Struct("<qq")
_HEAD_START = len(_MAGIC) + 4 + _SIZES.size

Numbers = npt.NDArray[np.int64]


class UnusableCache(ValueError):
    """The file is no cache, is damaged, or is of another version."""


@dataclass(frozen=True)
class CachedFile:
    """An index file as it was: its path below the index folder, its signature, and what it says."""

    path: str
    signature: Signature
    index: Index


def encode(files: Sequence[CachedFile]) -> bytes:
    """Return the content of a cache."""
    # Many files share a payload, and many payloads their names and shapes: by their ids.
    payloads = {id(file.index.payload): file.index.payload for file in files}
    names = {id(payload.tensors): payload.tensors.names for payload in payloads.values()}
    shapes = {id(payload.shapes): shape_payload(payload.shapes) for payload in payloads.values()}
    name_places, shape_places, payload_places = (
        {key: place for place, key in enumerate(of)} for of in (names, shapes, payloads)
    )
    rows, lengths, starts = [], array("q"), array("q")
    for payload in payloads.values():
        scattered = not np.array_equal(_one_after_the_other(np.array(payload.lengths, np.int64)), payload.starts)
        rows.append((name_places[id(payload.tensors)], shape_places[id(payload.shapes)], int(scattered)))
        lengths += payload.lengths
        if scattered:
            starts += payload.starts
    said = [(file.path, *file.signature, file.index.meta, payload_places[id(file.index.payload)]) for file in files]
    fields = {"names": [*names.values()], "shapes": [*shapes.values()], "payloads": rows, "files": said}
    head = json.dumps(fields).encode()
    numbers = np.array(lengths, "<u4").tobytes() + np.array(starts, "<i8").tobytes()
    content = _SIZES.pack(len(head), len(lengths)) + head + numbers
    return _MAGIC + struct.pack("<I", crc32c(content)) + content


def decode(content: bytes, parser: IndexParser) -> dict[str, CachedFile]:
    """Return the index files of a cache by their paths.

    Args:
        content: of the cache.
        parser: of the run's other index files, which shares its names.

    Raises:
        UnusableCache: it is no cache, was changed, or says what no index file may say.
    """
    try:
        fields, lengths, starts = _parts(content)
        payloads = list(_payloads(fields, lengths, starts, parser))
        return {file.path: file for file in _files(fields, payloads)}
    except UnusableCache:
        raise
    except (ValueError, TypeError, LookupError, RecursionError, IndexReaderException):
        raise UnusableCache("it says what no index file may say") from None


def _parts(content: bytes) -> tuple[dict[str, Any], Numbers, Numbers]:
    if len(content) < _HEAD_START or not content.startswith(_MAGIC):
        raise UnusableCache("it is no cache of this version")
    (checksum,) = struct.unpack_from("<I", content, len(_MAGIC))
    if crc32c(memoryview(content)[len(_MAGIC) + 4 :]) != checksum:
        raise UnusableCache("it was changed")
    size, count = _SIZES.unpack_from(content, len(_MAGIC) + 4)
    _require(size >= 0 and 0 <= count <= len(content))
    end = _HEAD_START + size
    lengths = np.frombuffer(content, "<u4", count, end).astype(np.int64)
    starts = np.frombuffer(content[end + 4 * count :], "<i8").astype(np.int64)
    return json.loads(content[_HEAD_START:end]), lengths, starts


def _payloads(fields: dict[str, Any], lengths: Numbers, starts: Numbers, parser: IndexParser) -> Iterator[Payload]:
    _require(not lengths.size or (lengths.min() >= FRAME_BYTES and lengths.max() <= LARGEST_RECORD))
    _require(not starts.size or (starts.min() >= 0 and starts.max() <= LARGEST_FILE))
    for names in fields["names"]:
        _require(all(type(name) is str for name in names) and len({*names}) == len(names))
    shared = [parser.shared(tuple(names)) for names in fields["names"]]
    shapes = [read_shapes(entries) for entries in fields["shapes"]]
    at = scattered_at = 0
    for name_place, shape_place, scattered in fields["payloads"]:
        names = shared[name_place]
        size = len(names.names)
        own = lengths[at : at + size]
        first = starts[scattered_at : scattered_at + size] if scattered else _one_after_the_other(own)
        _require(len(own) == size == len(first))
        yield Payload(names, array("q", first.tobytes()), array("q", own.tobytes()), shapes[shape_place])
        at += size
        scattered_at += size if scattered else 0
    _require(at == len(lengths) and scattered_at == len(starts))


def _files(fields: dict[str, Any], payloads: list[Payload]) -> Iterator[CachedFile]:
    for path, changed, size, meta, place in fields["files"]:
        yield CachedFile(path, (changed, size), read_index({"meta": meta}, payloads[place]))


def _one_after_the_other(lengths: Numbers) -> Numbers:
    starts: Numbers = np.cumsum(lengths) - lengths
    return starts


def _require(condition: object) -> None:
    if not condition:
        raise ValueError
