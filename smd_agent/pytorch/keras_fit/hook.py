"""Hook of a Keras that computes with PyTorch; its collections and names are those of Keras on TensorFlow."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.value_writing import Captured
from smd_agent.framework.keras.every_step import EveryStep
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.plain_access import is_a
from smd_agent.pytorch.arrays import to_array
from smd_agent.pytorch.environment import facts
from smd_agent.pytorch.keras_fit.scalar_variables import TorchVariables
from smd_agent.pytorch.worker import rank_and_size


class KerasHook(KerasLogs):
    """Saves ``fit``, ``evaluate`` and ``predict`` of Keras 3 on PyTorch."""

    facts = (facts, *KerasLogs.facts)

    def set_up(self) -> None:
        """The mode follows the call."""
        super().set_up()
        self.every_step = EveryStep(self.recorder, TorchVariables())
        self.follow_calls()

    def to_array(self, value: Any) -> Captured | None:
        """A tensor, or the value of one of Keras's variables, as an array that may share its memory."""
        tensor = value if is_a(value, torch.Tensor) else attribute(value, "value", value)
        return to_array(tensor) if is_a(tensor, torch.Tensor) else super().to_array(value)

    def worker(self) -> tuple[int, int]:
        """Rank and number of ranks, as ``torch.distributed`` knows them when the first step is saved."""
        return rank_and_size()
