"""Base of the probes that look at how modules are called: models and their layers alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.step_events import LayerCall, ModelCall, on
from smd_agent.framework.usage import UsageProbe
from smd_agent.pytorch.own_operations import without_gradients


class CalledModules(UsageProbe, domain=INPUTS, doing="looking at how a module is called"):
    """The modules that are called in one step that is saved; a model may be such a layer itself."""

    def before(self, name: str, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Look at a model or a layer that is about to be called; None stands for one that is gone."""
        raise NotImplementedError

    @on(ModelCall)
    @without_gradients
    def before_model(self, call: ModelCall) -> None:
        """A model is about to be called."""
        self.before(call.name, call.model, *call.inputs)

    @on(LayerCall)
    @without_gradients
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called."""
        self.before(*call)
