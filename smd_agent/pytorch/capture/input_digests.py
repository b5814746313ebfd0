"""Digests of what a model is called with in a step that is saved; see ``framework.training_facts``."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent import session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.pytorch.arrays import PLAIN_CLASSES, tensors_in

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class InputDigests:
    """The digests of one step.

    Args:
        writer: takes the values.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._writer = writer
        self._wanted = CollectionKeys.INPUT_DIGESTS in writer.collections_due()
        self._calls: dict[str, int] = {}

    @session.fence("looking at a model's inputs")
    @torch.no_grad()
    def before_call(self, model: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Save the digest of a model's inputs; none where a call has no tensors."""
        if not self._wanted:
            return
        call = self._calls.get(model, 0)
        self._calls[model] = call + 1
        found = [tensor.detach() for tensor in tensors_in((args, kwargs)) if _can_be_read(tensor)]
        parts = [(_words(tensor), str(tensor.dtype), tuple(tensor.shape)) for tensor in found]
        if len({tensor.device for tensor in found}) == 1:
            self._writer.save_tensors((f"{facts.INPUT_DIGEST}{model}_{call}",), (facts.digest(parts, torch),))


def _can_be_read(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) in PLAIN_CLASSES and tensor.layout is torch.strided and not tensor.is_meta and tensor.numel() > 0
    )


def _words(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    part: torch.Tensor = facts.looked_at(tensor.resolve_neg().reshape(-1)).contiguous().reshape(-1)
    return part.view(_WORDS[part.element_size()]).to(torch.int64)
