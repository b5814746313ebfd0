"""Layouts of steps: what the file of one step can reuse of those of the steps before."""

from __future__ import annotations

import json

from smd_agent.formats.encoder import HeadEncoder, ScalarBlock, Stamp
from smd_agent.formats.index import shape_fragment, tensor_fragment

_CACHED_BLOCKS = 10_000


class Layouts:
    """What one step's layout can reuse of the step before: heads, scalar blocks and their index text."""

    def __init__(self) -> None:
        self.heads = HeadEncoder()
        self.names: dict[str, str] = {}
        self._shapes: dict[str, tuple[tuple[object, ...], str]] = {}
        self._blocks: dict[tuple[str, ...], ScalarBlock] = {}
        self._texts: dict[tuple[str, ...], tuple[ScalarBlock, int, str]] = {}

    def scalar_block(self, tags: tuple[str, ...], stamp: Stamp) -> ScalarBlock:
        """The block for these tags, rebuilt when the step's numbers have grown by a byte."""
        block = self._blocks.get(tags)
        if block is None or not block.fits(stamp):
            if len(self._blocks) >= _CACHED_BLOCKS:
                self._blocks.clear()
                self._texts.clear()
            block = self._blocks[tags] = ScalarBlock(tags, stamp)
        return block

    def name_json(self, name: str) -> str:
        """The name as it stands in JSON."""
        text = self.names.get(name)
        if text is None:
            text = self.names[name] = json.dumps(name)
        return text

    def scalar_index(self, tags: tuple[str, ...], block: ScalarBlock, start: int) -> str:
        """Index entries of a block that begins at ``start``."""
        known = self._texts.get(tags)
        if known is not None and known[0] is block and known[1] == start:
            return known[2]
        entries = []
        position = start
        for tag, length in zip(tags, block.lengths, strict=True):
            entries.append(tensor_fragment(self.name_json(tag), position, length))
            position += length
        text = ", ".join(entries)
        self._texts[tags] = (block, start, text)
        return text

    def shape_index(self, name: str, original_name: str, shape: tuple[int, ...], dtype: str | None) -> str:
        """Index entry of a noted shape."""
        noted = original_name, shape, dtype
        known = self._shapes.get(name)
        if known is None or known[0] != noted:
            text = shape_fragment(self.name_json(name), self.name_json(original_name), shape, dtype)
            known = self._shapes[name] = noted, text
        return known[1]
