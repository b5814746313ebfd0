"""The losses of a step that is saved.

Loss modules of ``torch.nn`` show theirs when they are called. Any other loss shows when ``backward`` starts from it, so
in evaluation only functional losses are left: they are seen in the compiled functions that ``torch.nn.functional``
calls, which neither a program nor a compiler holds on to. A model that works out its loss itself, and returns it under
the name "loss", shows it in both modes.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

from smd_agent import session
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.captured_step import Installed, SaveIO
from smd_agent.framework.loss_links import comes_from
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture.loss_scaling import Node, Scales, identity, unscaled
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.tracing import graph_task, is_compiling, is_opaque

UNNAMED_LOSS = "Loss"

_RESCALING = {
    "AliasBackward0",
    "CloneBackward0",
    "DivBackward0",
    "MeanBackward0",
    "MulBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SumBackward0",
    "ToCopyBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
}

# What the losses of torch.nn.functional return as it is, and the name of the loss. Not so kl_div and huber_loss.
_FUNCTIONAL = {
    (torch._C._nn, "cross_entropy_loss"): "cross_entropy_loss",
    (torch._C._nn, "nll_loss_nd"): "nll_loss",
    (torch._C._nn, "mse_loss"): "mse_loss",
    (torch._C._nn, "l1_loss"): "l1_loss",
    (torch._C._nn, "smooth_l1_loss"): "smooth_l1_loss",
    (torch._C._nn, "binary_cross_entropy"): "binary_cross_entropy_loss",
    (torch._C._nn, "multi_margin_loss"): "multi_margin_loss",
    (torch._C._nn, "multilabel_margin_loss"): "multilabel_margin_loss",
    (torch._C._nn, "soft_margin_loss"): "soft_margin_loss",
    (torch, "binary_cross_entropy_with_logits"): "binary_cross_entropy_with_logits_loss",
    (torch, "poisson_nll_loss"): "poisson_nll_loss",
    (torch, "ctc_loss"): "ctc_loss",
    (torch, "margin_ranking_loss"): "margin_ranking_loss",
    (torch, "hinge_embedding_loss"): "hinge_embedding_loss",
    (torch, "cosine_embedding_loss"): "cosine_embedding_loss",
    (torch, "triplet_margin_loss"): "triplet_margin_loss",
}


class Losses:
    """Saves each loss of a step once.

    Args:
        models: the models that are trained.
        scales: what scalers have done in the step.
        save_io: saves the tensors of a module's input or output.
    """

    def __init__(self, models: TrainedModels, scales: Scales, save_io: SaveIO) -> None:
        self._models = models
        self._recorder = models.recorder
        self._scales = scales
        self._save_io = save_io
        self._nodes: set[Node] = set()
        self._without_graph: dict[int, weakref.ref[torch.Tensor]] = {}
        self._held: list[tuple[str, torch.Tensor]] = []
        self.in_module = 0

    def install(self, installed: Installed) -> None:
        """Watch what computes losses until the step closes."""
        for loss in self._models.registered_losses:
            if not isinstance(loss, torch.nn.modules.loss._Loss):
                installed.on_close(loss.register_forward_hook(self._after_registered_loss).remove)
        if self._recorder.position.clock.mode is not ModeKeys.TRAIN:
            for (owner, function), name in _FUNCTIONAL.items():
                if hasattr(owner, function):
                    make = functools.partial(self._wrap_functional, name)
                    installed.patch(owner, function, make, why="losses computed by functions are saved")

    # Loss modules.

    def before_module(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module is about to run."""
        self.in_module += 1
        self._save_io(type(module).__name__, "input", (args, kwargs))

    @session.fence("saving a loss")
    def after_module(self, module: torch.nn.Module, loss: Any) -> None:
        """A loss module has run."""
        if not self.in_module:
            # It began in the step before.
            return
        self.in_module -= 1
        self._save(type(module).__name__, loss)

    def is_saved(self, loss: Any) -> None:
        """Remember a loss that was saved under a name of its own."""
        for tensor in tensors_in(loss):
            self._add(tensor)

    def _after_registered_loss(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self._save_registered(module, output)

    @session.fence("saving a loss")
    def _save_registered(self, module: torch.nn.Module, output: Any) -> None:
        self._save(type(module).__name__, output)

    def _save(self, name: str, loss: Any) -> None:
        if graph_task() != -1:
            return
        self.is_saved(loss)
        self._save_io(name, "output", loss)

    # Losses that models return.

    def after_model(self, output: Any) -> None:
        """A model has returned this."""
        loss = output.get("loss") if isinstance(output, Mapping) else None
        if isinstance(loss, torch.Tensor) and not self._knows(loss):
            self._save(UNNAMED_LOSS, loss)
        held, self._held = self._held, []
        for name, functional in held:
            if functional is not loss:
                self._save_io(name, "output", functional)

    # Functional losses in evaluation.

    def _wrap_functional(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def loss_function(*args: Any, **kwargs: Any) -> Any:
            loss = original(*args, **kwargs)
            # Inside of a loss module it is the module's, and what can be differentiated shows when it is.
            if not self.in_module and not is_compiling():
                self._save_functional(name, loss)
            return loss

        return loss_function

    @session.fence("saving a functional loss")
    def _save_functional(self, name: str, loss: Any) -> None:
        if isinstance(loss, torch.Tensor) and not loss.requires_grad and not is_opaque():
            if self._recorder.position.inside:
                # Perhaps the model returns it as its loss.
                self._held.append((name, loss))
            else:
                self._save_io(name, "output", loss)

    # Backward passes.

    def before_backward(self, tensors: Any) -> float:
        """Save the losses that a backward pass starts from; the scale that they, and so the gradients, have."""
        starts = list(tensors_in(tensors if isinstance(tensors, (list, tuple)) else [tensors]))
        scale = self._scales.scale_behind(starts)
        for tensor in starts:
            if not self._knows(tensor):
                self._add(tensor)
                noted = self._scales.scaled(tensor)
                self._save_io(UNNAMED_LOSS, "output", unscaled(tensor, scale) if noted is None else noted.value)
        return scale

    def _add(self, loss: torch.Tensor) -> None:
        if loss.grad_fn is not None:
            self._nodes.add(identity(loss.grad_fn))
        else:
            self._without_graph[id(loss)] = weakref.ref(loss)

    def _knows(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a loss that has been saved, or one rescaled."""
        if tensor.grad_fn is None:
            known = self._without_graph.get(id(tensor))
            return known is not None and known() is tensor
        return comes_from(tensor.grad_fn, lambda node: identity(node) in self._nodes, _rescaled)


def _rescaled(node: Any) -> Any:
    inputs = [source for source, _ in node.next_functions if source is not None]
    return inputs[0] if node.name() in _RESCALING and len(inputs) == 1 else None
