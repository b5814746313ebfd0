"""Digests of what a model is called with in a step that is saved; see ``training_facts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import DIGESTS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import ModelCall, Probe, on


class InputDigests(Probe, domain=DIGESTS, doing="looking at a model's inputs"):
    """The digests of one step.

    Args:
        writer: takes the values.
        digest: gives the digest of what a model is called with, of shape (1,), None where that has none.
    """

    def __init__(self, writer: StepWriter, digest: Callable[[Any], Any | None]) -> None:
        self._writer = writer
        self._digest = digest
        self.wanted = CollectionKeys.INPUT_DIGESTS in writer.collections_due()
        self._calls: dict[str, int] = {}

    @property
    def any(self) -> bool:
        """True if a model was called, in a step that saves them."""
        return bool(self._calls)

    @on(ModelCall)
    def save(self, call: ModelCall) -> None:
        """Save the digest of a model's inputs; none where a call has no tensors."""
        number = self._calls.get(call.name, 0)
        self._calls[call.name] = number + 1
        found = self._digest(call.inputs)
        if found is not None:
            self._writer.save_tensors((f"{facts.INPUT_DIGEST}{call.name}_{number}",), (found,))
