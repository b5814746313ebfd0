"""One step's event file and index, filled on the training thread and put on disk by the writer thread.

The training thread copies every value into blocks as the bytes that will stand in the file, so what it handed over can
change afterwards. It keeps the blocks until the step is complete, unless they become too many: while it copies, the
writer thread would only take memory bandwidth, and perhaps its processor, away from it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.core.distribution import Distribution
from smd_agent.core.failure_domains import BOARD, JOB_METRICS
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.event_encoder import LARGEST_TENSOR_BYTES, HeadEncoder, ScalarBlock, Stamp, tail
from smd_agent.formats.index import index_text, shape_fragment, tensor_fragment
from smd_agent.formats.paths import event_path, index_path
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES
from smd_agent.printable import count_of, rough_size_text
from smd_agent.storage.step_output import INLINE_BYTES, StepBytes, StepOutput
from smd_agent.storage.writer_thread import Writer

if TYPE_CHECKING:
    from smd_agent.storage.metrics_file import MetricStep
    from smd_agent.storage.tensorboard_files import BoardStep

_CACHED_BLOCKS = 10_000


class Growth(NamedTuple):
    """The growth of a run's folder: steps, values of tensors, and bytes of their files."""

    steps: int = 0
    tensors: int = 0
    size: int = 0

    def text(self, beside: int, more: str) -> str:
        """The same in words; ``beside`` are the bytes of other files, ``more`` follows the size of all."""
        return f"{count_of(self.steps, 'step')} ({self.tensors} values, {rough_size_text(self.size + beside)}{more})"


class StepFile:
    """The records of one step of one worker, in the order they are added.

    Args:
        place: gives the run's folder, on the writer thread; an OSError says that there is none.
        worker: the worker's name.
        stamp: when the step is, and of which mode.
        writer: puts the step on disk.
        layouts: what can be reused of the step before.
        board: gets what TensorBoard shows of the step; None if nothing is shown.
        metrics: gets what SageMaker's metrics have of the step; None if there are none.

    Attributes:
        stamp, board, metrics: the same.
        index_name: of the step's index file, below the run's folder.
    """

    def __init__(
        self,
        place: Callable[[], Path],
        worker: str,
        stamp: Stamp,
        writer: Writer,
        layouts: Layouts,
        board: BoardStep | None = None,
        metrics: MetricStep | None = None,
    ) -> None:
        self.stamp = stamp
        self.board = board
        self.metrics = metrics
        self._layouts = layouts
        self.index_name = index_path(stamp.step, worker)
        self._event_name = event_path(stamp.step, worker)
        output = StepOutput(place, self._event_name, self.index_name, writer.note_progress)
        self._bytes = StepBytes(output, writer)
        # Index entries by what they are of: a tensor's name, or the tags of a block of scalars.
        self._tensor_entries: dict[str | tuple[str, ...], str] = {}
        self._blocks: dict[tuple[str, ...], tuple[int, list[int]]] = {}
        self._shape_entries: dict[str, str] = {}
        # What is in place, or on its way there: how much, and its index.
        self._handed = Growth()
        self._index = ""

    @property
    def lost(self) -> bool:
        """True if the disk stands still, and what is added is not kept."""
        return self._bytes.lost

    @property
    def tensors(self) -> int:
        """Number of tensors and scalars that have been added; of one name the last counts."""
        names: set[str] = set()
        for entry in self._tensor_entries:
            names.update((entry,) if isinstance(entry, str) else entry)
        return len(names)

    @property
    def event_names(self) -> tuple[str, ...]:
        """The event file that the index names, below the run's folder; none if it has shapes alone."""
        return (self._event_name,) if self._tensor_entries else ()

    @property
    def is_empty(self) -> bool:
        """True if nothing has been added, so that there will be no file."""
        return not self._tensor_entries and not self._shape_entries

    @property
    def size(self) -> int:
        """Bytes of the event file so far."""
        return self._bytes.size

    def add(
        self,
        name: str,
        array: npt.NDArray[Any],
        original_dtype: str | None = None,
        wall_time: float | None = None,
    ) -> None:
        """Copy one tensor into the step. When the disk stands still the step is ``lost``, and nothing more is copied.

        Args:
            name: the tensor's name, stored as it is.
            array: any shape, any dtype the format knows, in any memory order.
            original_dtype: name of the dtype the values had before they were widened to ``array``'s.
            wall_time: seconds since the epoch, if not the step's.

        Raises:
            SMDebugTypeError: the format has no place for the dtype.
            ValueError: the tensor is too large for one record.
        """
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.nbytes > LARGEST_TENSOR_BYTES:
            raise ValueError(f"{name} has {array.nbytes} bytes and a record holds at most {LARGEST_TENSOR_BYTES}")
        data = self._bytes
        start = data.begin()
        stamp = self.stamp if wall_time is None else replace(self.stamp, wall_time=wall_time)
        values = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        small = values.nbytes <= INLINE_BYTES
        position = None if small else data.position
        head = self._layouts.heads.head(stamp, name, array.dtype, array.shape, original_dtype, position)
        if small:
            checksum = crc32c(values.data, crc32c(memoryview(head)[FRAME_HEADER_BYTES:]))
            data.append_small(head, values, tail(checksum))
        else:
            data.append(head, skip=FRAME_HEADER_BYTES)
            data.append(values, skip=0)
            data.append_open_tail()
        self._enter(name, start)
        if self.board is not None:
            BOARD.run("adding a tensor", partial(self.board.add, name, array, wall_time))
        if self.metrics is not None:
            JOB_METRICS.run("adding a metric", partial(self.metrics.add, name, array, wall_time))

    def add_text(self, name: str, values: Sequence[str]) -> None:
        """Add a 1-D array of text."""
        start = self._bytes.begin()
        self._bytes.append(self._layouts.heads.text(self.stamp, name, values))
        self._enter(name, start)

    def add_scalars(self, names: tuple[str, ...], values: npt.NDArray[np.float64]) -> None:
        """Add one float64 scalar for each name; cheap when the same names come again in later steps."""
        block = self._layouts.scalar_block(names, self.stamp)
        start = self._bytes.begin()
        self._bytes.append(block.render(self.stamp, values))
        self._tensor_entries[names] = self._layouts.scalar_index(names, block, start)
        self._blocks[names] = start, block.lengths
        self._bytes.note_end()
        if self.board is not None:
            BOARD.run("adding numbers", partial(self.board.add_scalars, names, values))

    def add_shape(self, name: str, original_name: str, shape: tuple[int, ...], dtype: str | None = None) -> None:
        """Note a tensor's shape and the dtype it has in the index."""
        self._shape_entries[name] = self._layouts.shape_index(name, original_name, shape, dtype)

    def add_distribution(self, name: str, distribution: Distribution) -> None:
        """Have a picture of a tensor that is not added whole; there is none in the event file."""
        if self.board is not None:
            self.board.distributions[name] = distribution

    def drop(self, names: set[str]) -> None:
        """Leave tensors and scalars of these names out of the index: others of the same names follow."""
        self._bytes.begin()
        if self.board is not None:
            self.board.drop(names)
        if self.metrics is not None:
            self.metrics.drop(names)
        for name in names:
            self._tensor_entries.pop(name, None)
        for tags, (start, lengths) in [*self._blocks.items()]:
            if names.isdisjoint(tags):
                continue
            del self._blocks[tags], self._tensor_entries[tags]
            for tag, length in zip(tags, lengths, strict=True):
                if tag not in names:
                    self._enter(tag, start, length)
                start += length

    def put_in_place(self, done: Callable[[Growth], None], failed: Callable[[], None]) -> None:
        """Hand the step to the writer thread, which calls ``done`` once its index is in place, or ``failed``.

        More may be added afterwards, and put in place by another call. A step to which nothing was added leaves no
        file. One that is ``lost`` leaves what is in place already, and calls neither.
        """
        if self.lost:
            self._bytes.abandon()
            return
        if self.is_empty:
            return
        self._bytes.begin()
        self._bytes.hand_over_all()
        text = index_text(
            self.stamp.mode.name,
            self.stamp.mode_step,
            self._event_name if self._tensor_entries else None,
            [*self._tensor_entries.values()],
            [*self._shape_entries.values()],
        )
        before, self._handed = self._handed, Growth(1, self.tensors, self._bytes.size + len(text.encode()))
        growth = Growth(*map(operator.sub, self._handed, before))
        self._bytes.commit(None if text == self._index else text.encode(), partial(done, growth), failed)
        self._index = text

    def _enter(self, name: str, start: int, length: int | None = None) -> None:
        length = self._bytes.size - start if length is None else length
        self._tensor_entries[name] = tensor_fragment(self._layouts.name_json(name), start, length)
        self._bytes.note_end()


class Layouts:
    """The parts of the step before that a step's layout can reuse: heads, scalar blocks and their index text."""

    def __init__(self) -> None:
        self.heads = HeadEncoder()
        self.names: dict[str, str] = {}
        self._shapes: dict[str, tuple[tuple[object, ...], str]] = {}
        # Steps of one mode alone have numbers that only grow.
        self._blocks: dict[tuple[tuple[str, ...], ModeKeys], ScalarBlock] = {}
        self._texts: dict[ScalarBlock, tuple[int, str]] = {}

    def scalar_block(self, tags: tuple[str, ...], stamp: Stamp) -> ScalarBlock:
        """The block for these tags, rebuilt when the numbers of its mode's steps have grown by a byte."""
        key = tags, stamp.mode
        block = self._blocks.get(key)
        if block is not None and block.fits(stamp):
            return block
        if block is None and len(self._blocks) >= _CACHED_BLOCKS:
            # One alone: without all of them, each step of more blocks would build each one.
            block = self._blocks.popitem()[1]
        if block is not None:
            self._texts.pop(block, None)
        block = self._blocks[key] = ScalarBlock(tags, stamp)
        return block

    def name_json(self, name: str) -> str:
        """The name as it stands in JSON."""
        text = self.names.get(name)
        if text is None:
            text = self.names[name] = json.dumps(name)
        return text

    def scalar_index(self, tags: tuple[str, ...], block: ScalarBlock, start: int) -> str:
        """Index entries of a block that begins at ``start``."""
        known = self._texts.get(block)
        if known is not None and known[0] == start:
            return known[1]
        entries = []
        position = start
        for tag, length in zip(tags, block.lengths, strict=True):
            entries.append(tensor_fragment(self.name_json(tag), position, length))
            position += length
        text = ", ".join(entries)
        self._texts[block] = (start, text)
        return text

    def shape_index(self, name: str, original_name: str, shape: tuple[int, ...], dtype: str | None) -> str:
        """Index entry of a noted shape."""
        noted = original_name, shape, dtype
        known = self._shapes.get(name)
        if known is None or known[0] != noted:
            text = shape_fragment(self.name_json(name), self.name_json(original_name), shape, dtype)
            known = self._shapes[name] = noted, text
        return known[1]
