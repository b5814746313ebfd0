"""MXNet's collections: which there are, and how the inputs and outputs of a block join one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mxnet.gluon import Block

from smd_agent.core.collection import Collection as BaseCollection
from smd_agent.core.collection_keys import CollectionKeys

# A Gluon loss is named like "softmaxcrossentropyloss0", hence the one character after "loss".
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
    CollectionKeys.BIASES: ("^(?!gradient).*bias",),
    CollectionKeys.GRADIENTS: ("^gradient",),
    CollectionKeys.LOSSES: (".*loss._(?!input).*output",),
}

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.LOSSES,)


class Collection(BaseCollection):
    """A named group of tensors; blocks can be added to it."""

    def add_block_tensors(self, block: Block, inputs: bool = False, outputs: bool = True) -> None:
        """Put a block's inputs and outputs into the collection; its name never changes, so this takes effect now."""
        kinds = [kind for kind, wanted in (("input", inputs), ("output", outputs)) if wanted]
        self.include([f"^{re.escape(block.name)}_{kind}_" for kind in kinds])
