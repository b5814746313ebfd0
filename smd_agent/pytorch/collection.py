"""PyTorch's collections: which there are, and how the inputs and outputs of a module join one."""

from __future__ import annotations

import re

import torch

from smd_agent.core.collection import Collection as BaseCollection
from smd_agent.framework import training_facts
from smd_agent.framework.built_in_collections import built_in_collections, layers_but

# What has "loss" in front only, such as "loss_fn", joins by name where it is a loss: see ``capture.loss_names``.
_LOSSES = r"[Ll]oss(_\d+)?_output_\d+$"
BUILT_IN = {
    **built_in_collections(_LOSSES),
    **layers_but(_LOSSES),
    **training_facts.COLLECTIONS,
}


class Collection(BaseCollection):
    """A named group of tensors; modules can be added to it."""

    def add_module_tensors(self, module: torch.nn.Module, inputs: bool = False, outputs: bool = True) -> None:
        """Put a module's inputs and outputs into the collection.

        The module's name is known once the model it belongs to is found, so the names are settled when the first step
        is saved.
        """
        pending: list[tuple[torch.nn.Module, bool, bool]] = self.__dict__.setdefault("_modules", [])
        pending.append((module, inputs, outputs))

    def settle_modules(self, names: dict[int, str]) -> bool:
        """Turn the modules added so far into regexes; ``names`` gives a module's name by its id. True if any was."""
        pending = self.__dict__.pop("_modules", [])
        for module, inputs, outputs in pending:
            name = names.get(id(module))
            if name is None:
                self.__dict__.setdefault("_modules", []).append((module, inputs, outputs))
                continue
            kinds = [kind for kind, wanted in (("input", inputs), ("output", outputs)) if wanted]
            self.include([f"^{re.escape(name)}_{kind}_" for kind in kinds])
        return bool(pending)
