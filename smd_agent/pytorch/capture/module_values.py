"""Inputs and outputs of modules in one saved step, losses among them: numbered over the whole step.

They are saved as ``<module>_input_<i>`` and ``<module>_output_<i>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.parameter_roles import ParameterRoles
from smd_agent.pytorch.arrays import tensors_in

_OF_PARAMETER = re.compile("weight|bias")


class ModuleValues:
    """Takes the values of one step.

    Args:
        step: numbers and saves them.
        roles: keep them out of the weights: a layer that makes a weight has its name.
        takes: tells whether what is computed now is of this step, and new.
    """

    def __init__(self, step: CapturedStep, roles: ParameterRoles, takes: Callable[[], bool]) -> None:
        self._step = step
        self._roles = roles
        self._takes = takes

    def save(self, name: str, kind: str, value: Any) -> None:
        """Save the tensors of a module's "input" or "output"."""
        if self._takes():
            tensors = tensors_in(value)
            full_name = f"{name}_{kind}"
            if _OF_PARAMETER.search(full_name):
                first = self._step.counts.get(full_name, 0)
                self._roles.keep_out(f"{full_name}_{first + number}" for number in range(len(tensors)))
            self._step.save_numbered(full_name, tensors)

    def outputs(self, name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
        """The tensors of a module's output, and the names that they would be saved under now."""
        first = self._step.counts.get(f"{name}_output", 0)
        return [(f"{name}_output_{first + i}", tensor) for i, tensor in enumerate(tensors_in(value))]
