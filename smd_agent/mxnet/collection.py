"""MXNet's collections: which there are, and how the inputs and outputs of a block join one."""

from __future__ import annotations

import re

from mxnet.gluon import Block

from smd_agent.core.collection import Collection as BaseCollection
from smd_agent.framework import training_facts
from smd_agent.framework.built_in_collections import built_in_collections, layers_but
from smd_agent.mxnet.plain_access import name_of

# Blocks that return losses and are called otherwise join by name: see ``loss_names``.
_LOSSES = r"loss\d*_output_\d+$"
BUILT_IN = {**built_in_collections(_LOSSES), **layers_but(_LOSSES), **training_facts.COLLECTIONS}


class Collection(BaseCollection):
    """A named group of tensors; blocks can be added to it."""

    def add_block_tensors(self, block: Block, inputs: bool = False, outputs: bool = True) -> None:
        """Put a block's inputs and outputs into the collection; its name never changes, so this takes effect now."""
        kinds = [kind for kind, wanted in (("input", inputs), ("output", outputs)) if wanted]
        self.include([f"^{re.escape(name_of(block))}_{kind}_" for kind in kinds])
