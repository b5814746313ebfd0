"""Blocks that return losses, and their names.

Blocks of ``gluon.loss`` do, those that the user has registered, and any other from whose result a backward pass has
started. A program may make a new loss block in each step, and Gluon numbers them all: one that takes the place of
another, which the program has let go of, gets its name.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxnet.gluon import Block
from mxnet.gluon.loss import Loss as LossBlock

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.interpreter.reference_counts import references
from smd_agent.mxnet.plain_access import name_of

if TYPE_CHECKING:
    from smd_agent.core.selection import Selection

_LOSSES = CollectionKeys.LOSSES
_NUMBER = re.compile(r"\d+$")


class LossBlocks:
    """The loss blocks of one run, held weakly.

    Args:
        selection: of the run; outputs of the blocks are put into its losses.

    Attributes:
        registered: those that the user has named.
    """

    def __init__(self, selection: Selection) -> None:
        self.registered: list[Block] = []
        self._selection = selection
        self._found: WeakIdentityMap[Block, bool] = WeakIdentityMap()
        self._names: WeakIdentityMap[Block, str] = WeakIdentityMap()
        # By name: the block that has it, and the trained blocks that it was called with.
        self._owners: dict[str, tuple[weakref.ref[Block], tuple[str, ...]]] = {}

    def add(self, block: Block) -> None:
        """A backward pass has started from what this block had returned."""
        self._found.set(block, True)

    def has(self, block: Block) -> bool:
        """True if a block returns a loss."""
        known = is_a(block, LossBlock) or self._found.get(block) is True
        return known or any(block is other for other in self.registered)

    def name(self, block: Block, models: tuple[str, ...]) -> str:
        """The name of a loss block.

        Args:
            block: it.
            models: names of the blocks that are trained; a name is only given on among losses of the same.
        """
        name = self._names.get(block)
        if name is None:
            name = self._names.set(block, self._name_to_take_over(block, models) or name_of(block))
            self._owners[name] = (weakref.ref(block), models)
        return name

    def known_name(self, block: Block) -> str | None:
        """The name that a loss block has got; None if it has got none."""
        return self._names.get(block)

    def put_in_losses(self, tensor_names: Sequence[str]) -> None:
        """Make tensors losses, unless the user has put another collection in their place."""
        losses = self._selection.manager.get(_LOSSES)
        for name in tensor_names:
            if not losses.matches(name) and self._selection.manager.keeps_built_in(_LOSSES):
                self._selection.place(_LOSSES, name)

    def _name_to_take_over(self, block: Block, models: tuple[str, ...]) -> str | None:
        own = name_of(block)
        stem, number = _NUMBER.sub("", own), _NUMBER.search(own)
        if number is None:
            return None
        for name, (reference, known_models) in self._owners.items():
            if known_models != models or _NUMBER.sub("", name) != stem:
                continue
            owner = reference()
            # Blocks hold themselves: they live on until garbage is collected.
            if owner is None or (type(owner) is type(block) and references(owner) <= _references_of_lone()):
                return name
        return None


def _references_of_lone() -> int:
    # The prefix keeps Gluon from counting it.
    lone = LossBlock(None, 0, prefix="lone_")
    return references(lone)
