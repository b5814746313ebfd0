"""Outputs of modules that are losses: by the module's name, and by what it returns.

The collection's regex takes in what ends in "loss". A layer that has the word in front, such as ``loss_fn``, is put
there by name. No part of a loss module is a loss of its own, nor is what has many values, unless the module says that
it does not reduce them.
"""

from __future__ import annotations

import re

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.selection import Selection

_LOSSES = CollectionKeys.LOSSES
_NAMED = re.compile("[Ll]oss_(?!input).*output")


class LossNames:
    """Has ``losses`` hold the outputs that are losses.

    Args:
        selection: of the run.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._layers: dict[str, bool] = {}
        self._settled: dict[str, bool] = {}

    def may_be(self, name: str) -> bool:
        """True if what a module of this name returns is in the collection."""
        return self._matches(f"{name}_output_0")

    def settle_layer(self, name: str, path: str, in_loss: bool) -> bool:
        """True if a layer may return a loss; it is wanted, or not, from now on.

        Args:
            name: what its inputs and outputs are saved under.
            path: the same within the model.
            in_loss: whether the model is a loss.
        """
        known = self._layers.get(name)
        if known is None:
            known = self._layers[name] = not in_loss and _NAMED.search(f"{path}_output_0") is not None
            if known:
                self.put_in(f"{name}_output_0")
            elif self.may_be(name):
                self.leave_out(f"{name}_output_0")
        return known

    def is_loss_layer(self, name: str) -> bool:
        """True if a layer of this name has been settled, and may return a loss."""
        return self._layers.get(name, False)

    def put_in(self, tensor_name: str) -> None:
        """Make a tensor one of the losses, unless the user has put another collection in their place."""
        if self._settled.get(tensor_name) is not True:
            self._settled[tensor_name] = True
            self._selection.take_back(_LOSSES, tensor_name)
            if self._selection.manager.keeps_built_in(_LOSSES) and not self._matches(tensor_name):
                self._selection.place(_LOSSES, tensor_name)

    def leave_out(self, tensor_name: str) -> None:
        """Keep a tensor out of the losses; regexes of the user's own still bring it in."""
        if self._settled.get(tensor_name) is not False:
            self._settled[tensor_name] = False
            self._selection.leave_out(_LOSSES, tensor_name)

    def _matches(self, tensor_name: str) -> bool:
        return self._selection.manager.get(_LOSSES).matches(tensor_name)
