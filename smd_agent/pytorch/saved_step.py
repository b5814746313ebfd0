"""Everything that is installed while a step is saved, and nothing that stays behind.

weights    as they stand when the step opens;
inputs     of a module before it runs, because it may overwrite them; outputs as it returns them;
losses     that ``nn`` loss modules return, and otherwise the tensor ``backward`` starts from;
gradients  of all trained parameters when the outermost ``backward`` returns: reduced over ranks, unscaled, not clipped.
           A parameter that has none then is read when an optimizer is about to step; what its optimizer has used is
           not overwritten by a later backward of the same step.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from smd_agent import session
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.hidden import hidden_layers
from smd_agent.pytorch.losses import KnownLosses
from smd_agent.pytorch.opaque import graph_task, is_compiling
from smd_agent.pytorch.root import Root, RootCall

if TYPE_CHECKING:
    from smd_agent.pytorch.hook import Hook

LossModule = torch.nn.modules.loss._Loss
UNNAMED_LOSS = "Loss"

_OWN_COLLECTIONS = {"weights", "biases", "gradients", "losses"}


class SavedStep:
    """One step that is being saved: what is installed, and what has been saved so far."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._undo: list[Callable[[], object]] = []
        self._counts: Counter[str] = Counter()
        self._parameters: dict[Root, list[tuple[str, torch.nn.Parameter]]] = {}
        self._with_gradient: set[int] = set()
        self._stepped: set[int] = set()
        self._losses = KnownLosses()
        self._scaled: dict[int, tuple[torch.Tensor, torch.Tensor, float]] = {}
        self._scale = 1.0
        self._every_layer = bool(hook.collections_due() - _OWN_COLLECTIONS) or hook.regexes_changed()

    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        for root in self._hook.roots:
            self.save_weights(root)
        self._patch(torch.autograd, "backward", self._wrap_backward)
        self._patch(LossModule, "__call__", self._wrap_loss_call)
        self._patch(torch.amp.GradScaler, "scale", self._wrap_scale)
        self._undo.append(register_optimizer_step_pre_hook(self._before_optimizer).remove)
        for loss in self._hook.registered_losses:
            if not isinstance(loss, LossModule):
                self._undo.append(loss.register_forward_hook(self._after_registered_loss).remove)

    def close(self) -> None:
        """Remove everything that was installed."""
        while self._undo:
            self._undo.pop()()
        self._scaled.clear()
        self._parameters.clear()

    def save_weights(self, root: Root) -> None:
        """Save a model's parameters, once a step."""
        if root not in self._parameters:
            pairs = self._parameters[root] = list(root.parameters())
            self._hook.save_tensors([name for name, _ in pairs], [parameter for _, parameter in pairs])

    # Forward.

    def forward(self, call: RootCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward with its layers watched."""
        root = call.root
        handles: list[Callable[[], object]] = []
        root.busy = True
        try:
            self._before_forward(root, args, kwargs, handles)
            output = call.forward(*args, **kwargs)
            self._after_forward(root, output)
            return output
        finally:
            root.busy = False
            for remove in handles:
                remove()

    @session.fence("preparing to save a model's layers")
    def _before_forward(
        self, root: Root, args: tuple[Any, ...], kwargs: dict[str, Any], handles: list[Callable[[], object]]
    ) -> None:
        self.save_weights(root)
        self.save_io(root.name, "input", (args, kwargs))
        wants = self._hook.wants
        layers = [pair for pair in root.layers() if self._every_layer or wants(f"{pair[0]}_output_0")]
        if layers:
            hidden = hidden_layers(root)
            for name, layer in layers:
                if layer not in hidden:
                    self._watch_layer(name, layer, handles)

    @session.fence("saving what a model returns")
    def _after_forward(self, root: Root, output: Any) -> None:
        self.save_io(root.name, "output", output)
        # Models that work out their loss themselves return it under this name, also in evaluation.
        loss = output.get("loss") if isinstance(output, Mapping) else None
        if isinstance(loss, torch.Tensor) and not self._losses.knows(loss):
            self._save_loss(UNNAMED_LOSS, loss)

    def _watch_layer(self, name: str, layer: torch.nn.Module, handles: list[Callable[[], object]]) -> None:
        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            self.save_io(name, "input", (args, kwargs))

        def after(module: torch.nn.Module, args: Any, output: Any) -> None:
            self.save_io(name, "output", output)

        handles.append(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
        handles.append(layer.register_forward_hook(after).remove)

    @session.fence("saving a module's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the tensors of a module's input or output, numbered over the whole step."""
        # Inside a backward pass this is the recomputation of an activation checkpoint: the values were saved before.
        if not self._hook.pulse.saving or graph_task() != -1:
            return
        for tensor in tensors_in(value):
            number = self._counts[f"{name}_{kind}"]
            self._counts[f"{name}_{kind}"] += 1
            self._hook.save_tensor_now(f"{name}_{kind}_{number}", tensor)

    # Losses.

    def _wrap_loss_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            name = type(module).__name__
            self.save_io(name, "input", (args, kwargs))
            loss = original(module, *args, **kwargs)
            self._save_loss(name, loss)
            return loss

        return call

    def _after_registered_loss(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self._save_loss(type(module).__name__, output)

    @session.fence("saving a loss")
    def _save_loss(self, name: str, loss: Any) -> None:
        if graph_task() != -1:
            return
        for tensor in tensors_in(loss):
            self._losses.add(tensor)
        self.save_io(name, "output", loss)

    # Backward.

    def _wrap_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = graph_task() == -1 and not is_compiling()
            if outermost:
                self._before_backward(tensors)
            result = original(tensors, *args, **kwargs)
            if outermost:
                self._save_gradients()
            return result

        return backward

    @session.fence("saving the loss of a backward pass")
    def _before_backward(self, tensors: Any) -> None:
        for tensor in tensors_in(tensors if isinstance(tensors, (list, tuple)) else [tensors]):
            unscaled, _, scale = self._scaled.get(id(tensor), (tensor, tensor, self._scale))
            self._scale = scale
            if not self._losses.knows(unscaled):
                self._losses.add(unscaled)
                self.save_io(UNNAMED_LOSS, "output", unscaled if unscaled is not tensor else _unscaled(tensor, scale))

    def _wrap_scale(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            self._note_scale(scaler, outputs, scaled)
            return scaled

        return scale

    @session.fence("reading the scale of a loss")
    def _note_scale(self, scaler: Any, outputs: Any, scaled: Any) -> None:
        self._scale = float(scaler.get_scale()) if scaler.is_enabled() else 1.0
        for before, after in zip(tensors_in(outputs), tensors_in(scaled), strict=True):
            # The scaled tensor is kept too, so that its id stays its own.
            self._scaled[id(after)] = (before, after, self._scale)

    @session.fence("saving gradients")
    def _save_gradients(self) -> None:
        pairs = [pair for pair in self._trained() if pair[1].grad is not None and id(pair[1]) not in self._stepped]
        self._with_gradient.update(id(parameter) for _, parameter in pairs)
        self._write_gradients(pairs, self._scale)
        self._scaled.clear()

    @session.fence("saving gradients before an optimizer's step")
    def _read_missing_gradients(self, optimizer: Any) -> None:
        pairs = [
            pair for pair in self._trained() if id(pair[1]) not in self._with_gradient and pair[1].grad is not None
        ]
        self._with_gradient.update(id(parameter) for _, parameter in pairs)
        self._write_gradients(pairs, 1.0)
        # What another backward adds to these from here on has no part in this step's update.
        self._stepped.update(id(parameter) for group in optimizer.param_groups for parameter in group["params"])

    def _before_optimizer(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not is_compiling():
            self._read_missing_gradients(optimizer)

    def _trained(self) -> Iterable[tuple[str, torch.nn.Parameter]]:
        for pairs in self._parameters.values():
            for name, parameter in pairs:
                if parameter.requires_grad:
                    yield name, parameter

    def _write_gradients(self, pairs: list[tuple[str, torch.nn.Parameter]], scale: float) -> None:
        names = [f"gradient/{name}" for name, _ in pairs]
        self._hook.save_tensors(names, [Gradient(parameter, scale) for _, parameter in pairs])

    def _patch(self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        own = name in vars(owner)
        original = getattr(owner, name)
        wrapper = wrap(original)
        setattr(owner, name, wrapper)

        def restore() -> None:
            # Somebody may have wrapped ours in the meantime; then theirs stays, and ours only passes calls through.
            if vars(owner).get(name) is wrapper:
                if own:
                    setattr(owner, name, original)
                else:
                    delattr(owner, name)

        self._undo.append(restore)


class Gradient:
    """A parameter's gradient, read and unscaled only if it is saved."""

    __slots__ = ("_parameter", "_scale")

    def __init__(self, parameter: torch.nn.Parameter, scale: float) -> None:
        self._parameter = parameter
        self._scale = scale

    def read(self) -> torch.Tensor:
        """The gradient as the optimizer would see it without clipping."""
        gradient = self._parameter.grad
        assert gradient is not None
        return _unscaled(gradient.detach(), self._scale)


def _unscaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    return tensor if scale == 1.0 else tensor.detach() * (1.0 / scale)
