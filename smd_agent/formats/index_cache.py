"""What the index files of a run say, in one file: a run of ten thousand steps is opened by reading that.

::

    16 bytes    "smd_agent index" and the number of this layout
     4 bytes    crc32c of everything after them
    14 x 8      how many elements each of the arrays has
    arrays      one after the other, in the order and with the types of ``_ARRAYS``

Numbers are little-endian. What is read is checked as an index file is: somebody else may have written it.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.index import LARGEST_FILE, LARGEST_RECORD, Index, NotedShape, Payload, is_below, is_dtype
from smd_agent.formats.paths import event_path, parse_step_file
from smd_agent.formats.tfrecord import FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from smd_agent.formats.index import IndexParser, Names, Shapes

Signature = tuple[int, int]
"""When a file was changed, in ns since the epoch, and its size in bytes."""

_MAGIC = b"smd_agent index\x01"
_ARRAYS = {
    # One element for each index file.
    "changed": "<i8",  # its signature
    "size": "<i8",
    "mode_step": "<i8",
    "mode": "<u4",
    "path": "<u4",  # text
    "event_file": "<u4",  # 0: none, 1: that of this step and worker, else 2 + text
    "payload": "<u4",
    # One for each payload.
    "names": "<u4",  # text: its names, each with a NUL behind it
    "shapes": "<u4",  # text: its noted shapes
    "scattered": "<u4",  # 0: its records lie one after the other from byte 0 on
    # One for each record, payload by payload; of starts for each record of a scattered payload.
    "lengths": "<u4",
    "starts": "<i8",
    # One for each text: where it ends; the texts.
    "ends": "<i8",
    "texts": "u1",
}
_HEAD_BYTES = len(_MAGIC) + 4 + 8 * len(_ARRAYS)
_MODES = {mode.value: mode for mode in ModeKeys}
_NO_FILE, _USUAL_FILE, _OTHER_FILE = range(3)
# They end a name, and part the fields of a shape; a name that has one is not kept.
_END, _PART = "\0", "\1"
_FORBIDDEN = "it says what no index file may say"
_LARGEST_NUMBER = 2**63 - 1
# Names take more memory than they take in the file.
_MOST_NAMES = 1 << 20


class UnusableCache(ValueError):
    """The file is no cache, is damaged, or is of another version."""


@dataclass(frozen=True)
class CachedFile:
    """An index file as it was: its path below the index folder, its signature, and what it says."""

    path: str
    signature: Signature
    index: Index


def encode(files: Iterable[CachedFile]) -> bytes:
    """Return the content of a cache; index files for which there is no form in it are left out."""
    cache = _Cache()
    for file in files:
        cache.add(file)
    content = cache.content()
    return _MAGIC + struct.pack("<I", crc32c(content)) + content


class _Cache:
    def __init__(self) -> None:
        self._cells: dict[str, list[int]] = {name: [] for name in _ARRAYS}
        self._texts: dict[str, int] = {}
        # By their ids; they are kept, so that these stay their own.
        self._joined: dict[int, tuple[object, int | None]] = {}
        self._payloads: dict[int, tuple[Payload, int | None]] = {}
        self._lengths: list[array[int]] = []
        self._starts: list[array[int]] = []
        self._names = 0

    def add(self, file: CachedFile) -> None:
        index, payload = file.index, file.index.payload
        if id(payload) not in self._payloads:
            self._payloads[id(payload)] = payload, self._add_payload(payload)
        place = self._payloads[id(payload)][1]
        step = parse_step_file(file.path.rpartition("/")[2])
        numbers = (index.mode_step, *file.signature)
        if place is None or step is None or max(numbers) > _LARGEST_NUMBER or not _is_text(file.path):
            return
        if index.event_file is None:
            event_file = _NO_FILE
        elif index.event_file == event_path(*step):
            event_file = _USUAL_FILE
        else:
            event_file = _OTHER_FILE + self._text(index.event_file)
        row = {"mode": index.mode.value, "path": self._text(file.path), "event_file": event_file, "payload": place}
        for name, value in (row | dict(zip(("mode_step", "changed", "size"), numbers, strict=True))).items():
            self._cells[name].append(value)

    def _add_payload(self, payload: Payload) -> int | None:
        names = self._join(payload.tensors, _names_text, len(payload.tensors.names))
        shapes = self._join(payload.shapes, _shapes_text, len(payload.shapes))
        if names is None or shapes is None:
            return None
        lengths = np.array(payload.lengths, "i8")
        scattered = not np.array_equal(np.cumsum(lengths) - lengths, np.array(payload.starts, "i8"))
        for name, value in (("names", names), ("shapes", shapes), ("scattered", int(scattered))):
            self._cells[name].append(value)
        self._lengths.append(payload.lengths)
        self._starts += [payload.starts] if scattered else []
        return len(self._cells["names"]) - 1

    def _join(self, part: Any, join: Callable[[Any], str | None], size: int) -> int | None:
        if id(part) not in self._joined:
            text = join(part)
            self._names += size
            fits = text is not None and _is_text(text) and self._names <= _MOST_NAMES
            self._joined[id(part)] = part, self._text(text) if text is not None and fits else None
        return self._joined[id(part)][1]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def content(self) -> bytes:
        texts = [text.encode() for text in self._texts]
        cells: dict[str, Any] = {
            **self._cells,
            "lengths": np.concatenate([np.array(part, "i8") for part in (array("q"), *self._lengths)]),
            "starts": np.concatenate([np.array(part, "i8") for part in (array("q"), *self._starts)]),
            "ends": np.cumsum([len(text) for text in texts], dtype="i8"),
            "texts": np.frombuffer(b"".join(texts), "u1"),
        }
        arrays = [np.asarray(cells[name], dtype) for name, dtype in _ARRAYS.items()]
        counts = struct.pack(f"<{len(arrays)}q", *(part.size for part in arrays))
        return b"".join([counts, *(part.tobytes() for part in arrays)])


def decode(content: bytes, parser: IndexParser) -> dict[str, CachedFile]:
    """Return the index files of a cache by their paths.

    Args:
        content: of the cache.
        parser: of the run's other index files, which shares its names.

    Raises:
        UnusableCache: it is no cache, was changed, or says what no index file may say.
    """
    arrays = _arrays(content)
    try:
        texts = list(_texts(arrays["ends"], arrays["texts"].tobytes()))
        payloads = list(_payloads(arrays, texts, parser))
        return {file.path: file for file in _files(arrays, texts, payloads)}
    except (ValueError, LookupError):
        raise UnusableCache(_FORBIDDEN) from None


def _arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    if len(content) < _HEAD_BYTES or not content.startswith(_MAGIC):
        raise UnusableCache("it is no cache of this version")
    (checksum,) = struct.unpack_from("<I", content, len(_MAGIC))
    if crc32c(memoryview(content)[len(_MAGIC) + 4 :]) != checksum:
        raise UnusableCache("it was changed")
    counts = struct.unpack_from(f"<{len(_ARRAYS)}q", content, len(_MAGIC) + 4)
    sizes = [count * np.dtype(dtype).itemsize for count, dtype in zip(counts, _ARRAYS.values(), strict=True)]
    if min(counts) < 0 or _HEAD_BYTES + sum(sizes) != len(content):
        raise UnusableCache("its arrays do not fill it")
    arrays, start = {}, _HEAD_BYTES
    for (name, dtype), count, size in zip(_ARRAYS.items(), counts, sizes, strict=True):
        arrays[name] = np.frombuffer(content, dtype, count, start)
        start += size
    return arrays


def _texts(ends: npt.NDArray[Any], joined: bytes) -> Iterator[str]:
    _require(not ends.size or (ends[0] >= 0 and bool(np.all(np.diff(ends) >= 0)) and ends[-1] == len(joined)))
    start = 0
    for end in ends.tolist():
        yield joined[start:end].decode()
        start = end


def _payloads(arrays: dict[str, npt.NDArray[Any]], texts: list[str], parser: IndexParser) -> Iterator[Payload]:
    lengths, starts = arrays["lengths"].astype("i8"), arrays["starts"].astype("i8")
    _require(not lengths.size or (lengths.min() >= FRAME_BYTES and lengths.max() <= LARGEST_RECORD))
    _require(not starts.size or (starts.min() >= 0 and starts.max() <= LARGEST_FILE))
    rows = list(zip(*(arrays[name].tolist() for name in ("names", "shapes", "scattered")), strict=True))
    names = {text: _read_names(texts[text], parser) for text in {row[0] for row in rows}}
    shapes = {text: _read_shapes(texts[text]) for text in {row[1] for row in rows}}
    _require(sum(len(one.names) for one in names.values()) + sum(map(len, shapes.values())) <= _MOST_NAMES)
    at = scattered_at = 0
    for name, shape, scattered in rows:
        size = len(names[name].names)
        own = lengths[at : at + size]
        first = starts[scattered_at : scattered_at + size] if scattered else np.cumsum(own) - own
        _require(len(own) == size == len(first))
        yield Payload(names[name], _as_array(first), _as_array(own), shapes[shape])
        at += size
        scattered_at += size if scattered else 0
    _require(at == len(lengths) and scattered_at == len(starts))


def _files(arrays: dict[str, npt.NDArray[Any]], texts: list[str], payloads: list[Payload]) -> Iterator[CachedFile]:
    columns = ("path", "changed", "size", "mode", "mode_step", "event_file", "payload")
    for path, changed, size, mode, mode_step, event_file, payload in zip(
        *(arrays[name].tolist() for name in columns), strict=True
    ):
        name = texts[path]
        step = parse_step_file(name.rpartition("/")[2])
        if step is None or mode_step < 0:
            raise UnusableCache(_FORBIDDEN)
        if event_file == _NO_FILE:
            place = None
            _require(not payloads[payload].starts)
        elif event_file == _USUAL_FILE:
            place = event_path(*step)
        else:
            place = texts[event_file - _OTHER_FILE]
        _require(place is None or is_below(place))
        yield CachedFile(name, (changed, size), Index(_MODES[mode], mode_step, place, payloads[payload]))


def _names_text(names: Names) -> str | None:
    return None if any(_END in name for name in names.names) else "".join(name + _END for name in names.names)


def _read_names(text: str, parser: IndexParser) -> Names:
    names = tuple(_parts(text))
    _require(len(set(names)) == len(names))
    return parser.shared(names)


def _shapes_text(shapes: Shapes) -> str | None:
    entries = [
        (name, noted.original_name, ",".join(map(str, noted.shape)), noted.dtype) for name, noted in shapes.items()
    ]
    if any(mark in name + original for name, original, *_ in entries for mark in (_END, _PART)):
        return None
    return "".join(_PART.join(entry) + _END for entry in entries)


def _read_shapes(text: str) -> Shapes:
    shapes = {}
    for entry in _parts(text):
        name, original, sizes, dtype = entry.split(_PART)
        _require(not sizes or sizes.replace(",", "").isdecimal())
        _require(not dtype or is_dtype(dtype))
        shapes[name] = NotedShape(original, tuple(map(int, sizes.split(","))) if sizes else (), dtype)
    return shapes


def _parts(text: str) -> list[str]:
    _require(not text or text.endswith(_END))
    _require(text.count(_END) <= _MOST_NAMES)
    return text.split(_END)[:-1]


def _as_array(numbers: npt.NDArray[Any]) -> array[int]:
    found = array("q")
    found.frombytes(numbers.tobytes())
    return found


def _is_text(text: str) -> bool:
    # A lone surrogate has no form in UTF-8.
    return text.encode("utf-8", "replace").decode() == text


def _require(condition: object) -> None:
    if not condition:
        raise UnusableCache(_FORBIDDEN)
