"""What the capture of a PyTorch step asks of the hook that it saves with, and what its own parts ask of each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from smd_agent.core.ports import StepWriter
from smd_agent.framework.captured_step import Installed
from smd_agent.pytorch.compiled.unwatchable_layers import Region
from smd_agent.pytorch.model.step_counter import Root, RootCall

Layers = list[tuple[str, torch.nn.Module]]
SaveIO = Callable[[str, str, Any], object]
"""Saves the tensors of a module's "input" or "output": called with its name, the kind and the value."""


class TrainedModels(Protocol):
    """Knows the models that are trained, and what takes the values of their steps."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""

    @property
    def registered_losses(self) -> Sequence[torch.nn.Module]:
        """The modules that return a loss, because the user has said so."""

    @property
    def in_this_thread(self) -> bool:
        """Whether the call that is captured is one of this thread."""

    @property
    def pass_opens_step(self) -> Callable[[], bool]:
        """Tells whether the next backward pass belongs to a step that is yet to be opened."""

    def roots_in_use(self) -> list[Root]:
        """The models without those that have not been called for many steps."""

    def regexes_changed(self) -> bool:
        """Whether a built-in collection has got regexes or names of the user's."""

    @property
    def left_out(self) -> Callable[[], bool]:
        """Tells whether what this thread computes is none of the step's."""

    def is_loss(self, name: str) -> bool:
        """Whether a tensor of this name is one of the losses."""

    def follow_gradients(self, root: Root) -> None:
        """A model is trained in evaluation mode: tell its modes apart by whether gradients are enabled."""


class LayerSource(Protocol):
    """Inputs and outputs of layers that cannot be watched where they are called."""

    def watch(self, call: RootCall, regions: list[Region], layers: Layers, watched: Installed) -> Callable[..., Any]:
        """Save the layers of compiled regions during one call of a model; the result runs the model's forward.

        Args:
            call: of the model.
            regions: the compiled regions in it.
            layers: all layers of the model that the step wants, with their names.
            watched: what is undone when the model's forward is over.
        """
