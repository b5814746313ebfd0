"""Inputs and outputs of models and layers in a saved step, and tensors that the program gives by hand.

They are saved as ``<module>_input_<i>`` and ``<module>_output_<i>``, numbered over the whole step.
What a module is given is saved before it runs, because it may overwrite it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerCall, LayerReturn, ModelCall, ModelReturn, Probe, ValueGiven, on
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.plain_access import LossModule

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


class Layers(Probe, domain=LAYERS, doing="saving a module's inputs and outputs"):
    """The inputs and outputs of one step.

    Args:
        values: takes them.
        wanted: whether the step may save any.
    """

    def __init__(self, values: ModuleValues, wanted: bool) -> None:
        self._values = values
        self.wanted = wanted

    @on(ModelCall)
    def before_model(self, call: ModelCall) -> None:
        """Save what a model is given."""
        self._values.save(call.name, "input", call.inputs)

    @on(LayerCall)
    def before_layer(self, call: LayerCall) -> None:
        """Save what a layer is given, or a module that computes a loss."""
        self._values.save(call.name, "input", (call.args, call.kwargs))

    @on(ModelReturn)
    def after_model(self, call: ModelReturn) -> None:
        """Save what a model has returned; of one that computes a loss, ``Losses`` does."""
        if call.name is not None and not is_a(call.model, LossModule):
            self._values.save(call.name, "output", call.outputs)

    @on(LayerReturn)
    def after_layer(self, call: LayerReturn) -> None:
        """Save what a layer has returned."""
        self._values.save(call.name, "output", call.outputs)

    @on(ValueGiven)
    def save_given(self, given: ValueGiven) -> None:
        """Save what the program gives as if a module of that name had returned it."""
        self._values.save(given.name, "output", given.value)
