"""Inputs and outputs of models and layers in a saved step, and tensors that the program gives by hand.

What a module is given is saved before it runs, because it may overwrite it.
"""

from __future__ import annotations

from smd_agent.core.domains import LAYERS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerCall, LayerReturn, ModelCall, ModelReturn, Probe, ValueGiven, on
from smd_agent.pytorch.capture.module_values import ModuleValues
from smd_agent.pytorch.structure import LossModule


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
