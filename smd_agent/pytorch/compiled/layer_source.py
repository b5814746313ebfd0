"""Interface by which the capture gets the layers of compiled regions: the only way from the capture to this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from smd_agent.framework.captured_step import Installed
from smd_agent.pytorch.compiled.unwatchable_layers import Region
from smd_agent.pytorch.model.step_counter import StepCounter
from smd_agent.pytorch.model.wrappers import Layers


class LayerSource(Protocol):
    """Inputs and outputs of layers that cannot be watched where they are called."""

    def watch(self, call: StepCounter, regions: list[Region], layers: Layers, watched: Installed) -> Callable[..., Any]:
        """Save the layers of compiled regions during one call of a model; the result runs the model's forward.

        Args:
            call: of the model.
            regions: the compiled regions in it.
            layers: all layers of the model that the step wants, with their names.
            watched: what is undone when the model's forward is over.
        """
