"""Records taken from an event file: one whose place is known, or all of them in order."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.core.patterns import name_pattern
from smd_agent.errors import DamagedRecord, SMDebugRuntimeError
from smd_agent.formats.event_decoder import SavedTensor, decode_tensors
from smd_agent.formats.tfrecord import (
    FOOTER_BYTES,
    FRAME_BYTES,
    FRAME_HEADER_BYTES,
    RecordError,
    check_footer,
    payload_length,
)
from smd_agent.printable import printable
from smd_agent.regular_file import bytes_from, open_to_read, read_bytes

# Of a record, frame included.
HEAD_BYTES = 1 << 14
# Of records that are read together.
_MOST_AT_ONCE = 1 << 22
# What a protobuf message may not reach.
_RECORD_BYTES = 1 << 31


def read_payload(path: str, start: int, length: int) -> bytes:
    """Return the payload of the record of ``length`` bytes, frame included, that begins at byte ``start``.

    Raises:
        RecordError: the frame is cut off or changed.
        OSError: the file cannot be read.
    """
    with open_to_read(path) as file:
        left = bytes_from(file, start)
        if length > HEAD_BYTES:
            return _next_payload(file, left, length)
        return _next_payload(io.BytesIO(read_bytes(file, min(left, length))), left, length)


def payload_of(record: bytes) -> bytes:
    """Return the payload of a record, frame included.

    Raises:
        RecordError: the frame is changed.
    """
    return _next_payload(io.BytesIO(record), len(record), len(record))


def head_of(record: bytes) -> bytes:
    """Return the first bytes, up to 16 KiB, of the payload of a record, frame included, unchecked."""
    return record[FRAME_HEADER_BYTES : len(record) - FRAME_BYTES + FRAME_HEADER_BYTES][:HEAD_BYTES]


def read_records(path: str, places: Iterable[tuple[int, int]]) -> Iterator[memoryview]:
    """Yield records, frames included, unchecked; those that lie close to each other are read at once.

    Args:
        path: of the event file.
        places: first byte and length of each record, in ascending order. One beyond the end of the file is cut off.

    Raises:
        OSError: the file cannot be read.
    """
    with open_to_read(path) as file:
        group: list[tuple[int, int]] = []
        for start, length in places:
            if group and (start - sum(group[-1]) > HEAD_BYTES or start - group[0][0] > _MOST_AT_ONCE):
                yield from _records(file, group)
                group = []
            group.append((start, length))
        yield from _records(file, group)


def _records(file: FileIO, places: list[tuple[int, int]]) -> Iterator[memoryview]:
    if places:
        first = places[0][0]
        view = memoryview(read_bytes(file, min(bytes_from(file, first), sum(places[-1]) - first)))
        for start, length in places:
            yield view[start - first : start - first + length]


def read_range(path: str, start: int, length: int) -> bytes:
    """Return ``length`` bytes from byte ``start`` on, unchecked; fewer where the file ends.

    Raises:
        OSError: the file cannot be read.
    """
    with open_to_read(path) as file:
        left = bytes_from(file, start)
        return read_bytes(file, min(left, length))


class FileReader:
    """All records of one event file, in order, without an index.

    For the file of a step that was not completed. The file is opened now and closed with the ``with`` block.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """

    def __init__(self, fname: str | os.PathLike[str]) -> None:
        self._path = Path(fname)
        self._file = io.BufferedReader(open_to_read(self._path))

    def __enter__(self) -> FileReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def read_tensors(self, check: object = "minimal") -> Iterator[tuple[str, int, npt.NDArray[Any], ModeKeys, int]]:
        """Yield name, global step, value, mode and mode step of every record.

        ``check`` is accepted for the sake of old programs: every checksum there is gets checked.

        Raises:
            DamagedRecord: a record is cut off or changed; those before it have been yielded.
            SMDebugRuntimeError: the file cannot be read.
        """
        for tensor in self._tensors():
            yield tensor.tag, tensor.step, tensor.value, tensor.mode, tensor.mode_step

    def read_events(
        self, check: object = "minimal", regex_list: str | Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return all records as ``{"timestamp", "step", "name", "value"}``, times in seconds since the epoch.

        Args:
            check: accepted for the sake of old programs.
            regex_list: keep names in which any of these is found.

        Raises:
            DamagedRecord: a record is cut off or changed.
            SMDebugRuntimeError: the file cannot be read.
        """
        regexes = [regex_list] if isinstance(regex_list, str) else regex_list
        return [
            {"timestamp": tensor.wall_time, "step": tensor.step, "name": tensor.tag, "value": tensor.value}
            for tensor in self._tensors()
            if regexes is None or any(name_pattern(regex).found_in(tensor.tag) for regex in regexes)
        ]

    def _tensors(self) -> Iterator[SavedTensor]:
        self._file.seek(0)
        size = os.fstat(self._file.fileno()).st_size
        name, step = "?", -1
        while (start := self._file.tell()) < size:
            try:
                tensors = list(decode_tensors(_next_payload(self._file, size - start)))
            except RecordError as error:
                detail = f"the record at byte {start}, behind {name}: {error}" if step >= 0 else str(error)
                raise DamagedRecord(str(self._path), "?", step, detail) from None
            except (OSError, MemoryError) as error:
                reason = getattr(error, "strerror", None) or "it is too large for the memory that there is"
                raise SMDebugRuntimeError(f"{printable(str(self._path))} cannot be read: {reason}") from None
            for tensor in tensors:
                name, step = tensor.tag, tensor.step
                yield tensor


def _next_payload(file: BinaryIO, left: int, length: int | None = None) -> bytes:
    """Return the payload of the record that comes next, of which there are ``left`` bytes until the file ends."""
    size = payload_length(read_bytes(file, min(left, FRAME_HEADER_BYTES)))
    if length is not None and size + FRAME_BYTES != length:
        raise RecordError("its length is not the one in the index")
    if size + FRAME_BYTES > left:
        raise RecordError("the file ends inside a record")
    if size >= _RECORD_BYTES:
        raise RecordError("it is larger than a record can be")
    payload = read_bytes(file, size)
    check_footer(payload, read_bytes(file, FOOTER_BYTES))
    return payload
