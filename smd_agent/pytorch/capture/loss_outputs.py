"""Losses in what models and modules return in a saved step, as names and the values themselves say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from smd_agent.core.failure_domains import LOSSES
from smd_agent.framework.nested_tensors import NOTHING, pairs_in
from smd_agent.framework.plain_access import attribute, elements_of, is_a, own_dict, text_of
from smd_agent.framework.step_events import LayerReturn, ModelReturn, Probe, ValueGiven, on
from smd_agent.pytorch.capture.layer_values import ModuleValues
from smd_agent.pytorch.capture.loss_graph import KnownLosses
from smd_agent.pytorch.capture.loss_names import LossNames
from smd_agent.pytorch.capture.trained_losses import OWN_LOSS
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


def parts_of(output: Any, levels: int = 2) -> list[tuple[object, torch.Tensor]]:
    """The tensors that a model returns and that may be losses, and where they stand in what it returns."""
    if is_a(output, torch.Tensor):
        return [("", output)] if _may_be_loss("", output) else []
    found: list[tuple[object, torch.Tensor]] = []
    for place, part in _held_by(output):
        if is_a(part, torch.Tensor):
            found += [(place, part)] if _may_be_loss(place, part) else []
        elif levels > 1 and (is_a(part, (tuple, list)) or pairs_in(part) is not NOTHING):
            found += [((place, inner), value) for inner, value in parts_of(part, levels - 1)]
    return found


def _held_by(output: Any) -> Iterable[tuple[object, Any]]:
    if is_a(output, (tuple, list)):
        return enumerate(elements_of(output))
    pairs = pairs_in(output)
    if pairs is NOTHING:
        # An object of a class of the program's.
        pairs = own_dict(output).items() or [(OWN_LOSS, attribute(output, OWN_LOSS))]
    return [(text_of(key, place), part) for place, (key, part) in enumerate(pairs)]


def _may_be_loss(place: object, part: torch.Tensor) -> bool:
    return place == OWN_LOSS or (part.numel() == 1 and part.is_floating_point())
