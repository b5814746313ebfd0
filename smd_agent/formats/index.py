"""Index files: where in its event file each tensor of one step and worker lies, and which shapes were noted.

::

    {
        "meta": {
            "mode": "TRAIN",
            "mode_step": 7,
            "event_file_name": "events/000000000010/000000000010_worker_0.tfevents",
        },
        "tensor_payload": [{"tensorname": str, "start_idx": int, "length": int}, ...],
        "shape_payload": [{"tensorname": str, "originalname": str, "shape": [int, ...], "dtype": str}, ...],
    }

``dtype``, which a tensor had that was not saved whole, is ours; it may be missing, and older readers skip it.
``start_idx`` and ``length`` delimit a framed record. A step that saved shapes only has no event file.
Steps of a run mostly differ in ``meta`` alone, so `IndexParser` keeps one copy of equal payloads. Of the others most
differ in the numbers of ``tensor_payload`` alone, which are then taken from the text without making objects of it.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import IndexReaderException
from smd_agent.formats.index_checks import CORRUPT, are_places, fields_of, meta_of, name_in, place_in, shape_in

_PAYLOAD_KEY = '"tensor_payload"'
_REMEMBERED = 64
# As `tensor_fragment` writes it. Inside of a name each quotation mark has a backslash before it.
_PLACE = re.compile(r'"start_idx": (0|[1-9][0-9]{0,18}), "length": ([1-9][0-9]{0,9})\}')


def tensor_fragment(name_json: str, start: int, length: int) -> str:
    """Return the entry of one saved tensor: its name as JSON, its record's first byte and size in bytes."""
    return f'{{"tensorname": {name_json}, "start_idx": {start}, "length": {length}}}'


def shape_fragment(name_json: str, original_name_json: str, shape: Sequence[int], dtype: str | None = None) -> str:
    """Return the entry of one noted shape; both names are JSON."""
    dims = ", ".join(map(str, shape))
    more = "" if dtype is None else f', "dtype": {json.dumps(dtype)}'
    return f'{{"tensorname": {name_json}, "originalname": {original_name_json}, "shape": [{dims}]{more}}}'


def index_text(mode: str, mode_step: int, event_file: str | None, tensors: Sequence[str], shapes: Sequence[str]) -> str:
    """Return the text of an index file.

    Args:
        mode: name of the step's mode.
        mode_step: number of the step within the mode.
        event_file: path of the event file below the run's root; None when the step saved shapes only.
        tensors: `tensor_fragment` results; one string may hold several, joined by commas.
        shapes: `shape_fragment` results, likewise.
    """
    place = "" if event_file is None else f', "event_file_name": {json.dumps(event_file)}'
    meta = f'{{"mode": "{mode}", "mode_step": {mode_step}{place}}}'
    payload = f'{_PAYLOAD_KEY}: [{", ".join(tensors)}], "shape_payload": [{", ".join(shapes)}]'
    return f'{{"meta": {meta}, {payload}}}'


@dataclass(frozen=True, eq=False)
class Names:
    """The tensors of a payload, in file order; one object for all payloads with the same tensors."""

    names: tuple[str, ...]
    positions: dict[str, int]


class NotedShape(NamedTuple):
    """The shape of a tensor that may not have been saved whole.

    original_name: what the program calls the tensor.
    shape: its sizes.
    dtype: empty where it was not noted.
    """

    original_name: str
    shape: tuple[int, ...]
    dtype: str = ""


Shapes = dict[str, NotedShape]
"""Noted shapes by the names of their tensors."""


@dataclass(frozen=True, eq=False)
class Payload:
    """The places of the tensors, in bytes, and the noted shapes."""

    tensors: Names
    starts: array[int]
    lengths: array[int]
    shapes: Shapes

    def location(self, name: str) -> tuple[int, int] | None:
        """Return the first byte and the length of a tensor's record; None when it was not saved."""
        position = self.tensors.positions.get(name)
        return None if position is None else (self.starts[position], self.lengths[position])

    def __contains__(self, name: str) -> bool:
        return name in self.tensors.positions or name in self.shapes


@dataclass(frozen=True)
class Index:
    """One index file; ``event_file`` is a path below the run's root, None when only shapes were noted."""

    mode: ModeKeys
    mode_step: int
    event_file: str | None
    payload: Payload

    @property
    def meta(self) -> dict[str, Any]:
        """Its ``meta``."""
        return {"mode": self.mode.name, "mode_step": self.mode_step, "event_file_name": self.event_file}


class IndexParser:
    """Reads the index files of one run."""

    def __init__(self) -> None:
        self._payloads: dict[str, Payload] = {}
        self._names: dict[tuple[str, ...], Names] = {}
        self._shapes: Shapes = {}
        # What stands around the numbers of a payload -> its names and shapes.
        self._texts: dict[tuple[str, ...], tuple[Names, Shapes]] = {}

    def parse(self, text: str) -> Index:
        """Read the text of one index file.

        Raises:
            IndexReaderException: it is not a complete index.
        """
        head, key, tail = text.partition(_PAYLOAD_KEY)
        payload = self._payloads.get(tail) if key else None
        fields = _load_head(head) if payload else None
        if payload is None or fields is None:
            fields, payload = self._new_payload(text, head, tail)
            if len(self._payloads) >= _REMEMBERED:
                self._payloads.clear()
            self._payloads[tail] = payload
        return read_index(fields, payload)

    def _new_payload(self, text: str, head: str, tail: str) -> tuple[dict[str, Any], Payload]:
        parts = _PLACE.split(tail)
        around = tuple(parts[::3])
        numbers = _numbers(parts[1::3], parts[2::3])
        known = self._texts.get(around)
        if known and numbers and (fields := _load_head(head)) is not None:
            return fields, Payload(known[0], *numbers, known[1])
        fields = fields_of(text)
        payload = self._payload(fields)
        # Two entries of one name, or numbers that stand elsewhere: not as we write it.
        if numbers == (payload.starts, payload.lengths):
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            self._texts[around] = payload.tensors, payload.shapes
        return fields, payload

    def _payload(self, fields: dict[str, Any]) -> Payload:
        if "tensor_payload" not in fields and "shape_payload" not in fields:
            meta_of(fields)
            raise IndexReaderException("neither tensor_payload nor shape_payload sections are present")
        try:
            # A name that comes twice: the later record counts.
            places = {name_in(entry): place_in(entry) for entry in fields.get("tensor_payload", ())}
            shapes = read_shapes(fields.get("shape_payload", ()))
            starts = array("q", (start for start, _ in places.values()))
            lengths = array("q", (length for _, length in places.values()))
        except (KeyError, TypeError, ValueError, OverflowError):
            raise IndexReaderException(CORRUPT) from None
        if shapes != self._shapes:
            self._shapes = shapes
        return Payload(self.shared(tuple(places)), starts, lengths, self._shapes)

    def shared(self, names: tuple[str, ...]) -> Names:
        """Return the one object for these names."""
        known = self._names.get(names)
        if known is None:
            positions = {name: position for position, name in enumerate(names)}
            known = self._names[names] = Names(names, positions)
        return known


def read_index(fields: dict[str, Any], payload: Payload) -> Index:
    """Return the index whose ``meta`` stands in these fields.

    Raises:
        IndexReaderException: it says what no index file may say.
    """
    mode, mode_step, event_file = meta_of(fields)
    if event_file is None and payload.starts:
        raise IndexReaderException("meta section has no event_file_name")
    return Index(mode, mode_step, event_file, payload)


def read_shapes(entries: Iterable[dict[str, Any]]) -> Shapes:
    """Return the shapes of a ``shape_payload``; of a name that comes twice the later one.

    Raises:
        KeyError, TypeError, ValueError: it says what no index file may say.
    """
    return {name_in(entry): NotedShape(*shape_in(entry)) for entry in entries}


def shape_payload(shapes: Shapes) -> list[dict[str, Any]]:
    """Return the ``shape_payload`` of noted shapes."""
    return [
        {"tensorname": name, "originalname": noted.original_name, "shape": noted.shape, "dtype": noted.dtype}
        for name, noted in shapes.items()
    ]


def _numbers(starts: Sequence[str], lengths: Sequence[str]) -> tuple[array[int], array[int]] | None:
    """Return them as numbers; None if they are out of bounds, or there are none."""
    try:
        found = array("q", map(int, starts)), array("q", map(int, lengths))
    except OverflowError:
        return None
    return found if starts and are_places(*found) else None


def _load_head(head: str) -> dict[str, Any] | None:
    """Return what stands before the payload, if that is ``meta`` alone."""
    try:
        fields = fields_of(head.rstrip().removesuffix(",") + "}")
    except IndexReaderException:
        return None
    return fields if fields.keys() == {"meta"} else None
