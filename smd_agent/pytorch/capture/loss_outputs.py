"""Outputs of modules in a saved step that are losses, as their names and what is returned say."""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.core.failure_domains import LOSSES
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.step_events import LayerReturn, ModelReturn, Probe, ValueGiven, on
from smd_agent.pytorch.capture.layer_values import ModuleValues
from smd_agent.pytorch.capture.loss_graph import KnownLosses
from smd_agent.pytorch.capture.loss_names import LossNames
from smd_agent.pytorch.plain_access import LossModule
from smd_agent.pytorch.tracing import graph_task


class LossOutputs(Probe, domain=LOSSES, doing="telling losses from other outputs"):
    """Outputs of one step that are losses by the names of their modules; asked before they are saved.

    Args:
        names: of the run.
        values: tell the names under which outputs are saved.
        known: losses that are saved.
    """

    def __init__(self, names: LossNames, values: ModuleValues, known: KnownLosses) -> None:
        self._names = names
        self._values = values
        self._known = known

    @on(ModelReturn)
    def after_model(self, call: ModelReturn) -> None:
        """A model has returned."""
        if call.name is not None and not is_a(call.model, LossModule) and self._names.may_be(call.name):
            self._settle(call.name, call.outputs, call.model)

    @on(LayerReturn)
    def after_layer(self, call: LayerReturn) -> None:
        """A layer has returned; what one returns that runs in its place is told by the name alone."""
        if call.layer is not None and self._names.is_loss_layer(call.name):
            self._settle(call.name, call.outputs, call.layer)

    @on(ValueGiven)
    def after_giving(self, given: ValueGiven) -> None:
        """The program gives a tensor a name."""
        if self._names.may_be(given.name):
            self._settle(given.name, given.value, None)

    def _settle(self, name: str, output: Any, module: torch.nn.Module | None) -> None:
        for tensor_name, tensor in self._values.outputs(name, output) if graph_task() == -1 else ():
            if tensor.numel() == 1 or _is_unreduced(module):
                self._names.put_in(tensor_name)
                self._known.add(tensor)
            else:
                self._names.leave_out(tensor_name)


def _is_unreduced(module: torch.nn.Module | None) -> bool:
    """True if a loss module returns a loss of many values."""
    if module is None:
        return False
    reduction = attribute(module, "reduction")
    return is_a(module, LossModule) or (type(reduction) is str and reduction == "none")
