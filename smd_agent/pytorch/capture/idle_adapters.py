"""Adapters that add nothing: the second matrix of one, as LoRA has it, is frozen, and all 0 as when it was made.

They are told of in the facts of the model's parameters, with ``"idle": true`` beside that matrix.
"""

from __future__ import annotations

import re
from typing import Any

from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.own_operations import without_gradients

_SECOND = re.compile(r"lora[._]?(b|up)(?![a-z0-9])", re.IGNORECASE)
# Each one costs a wait for an accelerator, and they are frozen together.
_MOST = 8


class IdleAdapters:
    """The idle adapters of one step that is saved; the first ones are looked at."""

    def __init__(self) -> None:
        self._looked_at = 0

    @without_gradients
    def has(self, name: str, parameter: Any) -> bool:
        """True if a parameter, by this name, is the second matrix of such an adapter."""
        if parameter.requires_grad or self._looked_at == _MOST or _SECOND.search(name) is None:
            return False
        self._looked_at += 1
        return has_memory(parameter) and parameter.numel() > 0 and not bool(parameter.detach().any())
