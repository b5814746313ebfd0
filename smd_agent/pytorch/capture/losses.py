"""The losses of a step that is saved.

Loss modules of ``torch.nn`` show theirs when they are called. Any other loss shows when ``backward`` starts from it. A
model that works out its loss itself, and returns it under the name "loss", shows it in both modes. What functions of
``torch.nn.functional`` return is a part of the loss that is trained, or in evaluation perhaps the same loss: see
``trained_losses``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import torch

from smd_agent import guard
from smd_agent.core.domains import LOSSES
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.loss_links import comes_from, origin
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture import functional_losses
from smd_agent.pytorch.capture.evaluation_losses import OWN_LOSS, FunctionCall, parts_of
from smd_agent.pytorch.capture.loss_scaling import NODES_OF_A_SUM, Node, Scales, identity, nodes_behind, unscaled
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.fences import fence
from smd_agent.pytorch.tracing import graph_task, has_compiled, is_opaque, probe

UNNAMED_LOSS = "Loss"

# Parts of one name in a step; a model that asks for a loss in a loop would fill the step with them.
_MOST_PARTS = 16

_COMPILED = "CompiledFunctionBackward"

_OF_ONE_VALUE = {"AliasBackward0", "CloneBackward0", "DivBackward0", "MulBackward0", "ToCopyBackward0"}
_RESCALING = {
    *_OF_ONE_VALUE,
    "MeanBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SumBackward0",
    "UnsqueezeBackward0",
    "ViewBackward0",
}

_next_number = probe(torch, "autograd._get_sequence_nr", 0)

SaveLoss = Callable[[str, Any], object]
"""Saves a loss as ``<name>_output_<i>``, whatever it is called; called with the name and the loss."""


class _Held(NamedTuple):
    """A loss that waits for the backward pass which shows whether it is trained.

    name: what it is called if it is not.
    place: where the model has it in what it returns, None for a function's.
    title: of the model.
    """

    name: str
    place: object
    title: str
    value: torch.Tensor


class Losses:
    """Saves each loss of a step once.

    Args:
        models: the models that are trained.
        scales: what scalers have done in the step.
        save_io: saves the tensors of a module's input.
        save_loss: saves a loss.
        called: gives the titles of the models that were called in the step.
    """

    def __init__(
        self,
        models: TrainedModels,
        scales: Scales,
        save_io: Callable[[str, str, Any], object],
        save_loss: SaveLoss,
        called: Callable[[], Iterable[str]],
    ) -> None:
        self._models = models
        self._trained = models.trained_losses
        self._recorder = models.recorder
        self._scales = scales
        self._save_io = save_io
        self._save_loss = save_loss
        self._called = called
        self._nodes: set[Node] = set()
        self._without_graph: dict[int, weakref.ref[torch.Tensor]] = {}
        self._held: dict[Node, _Held] = {}
        self._places: dict[Node, tuple[str, object]] = {}
        self._calls: dict[Node, FunctionCall] = {}
        self._inside: list[tuple[str, torch.Tensor]] = []
        self._in_training = self._recorder.position.clock.mode is ModeKeys.TRAIN
        self._any = False
        # The number of the first node that was made after a model had returned for the first time.
        self._made_until = 0
        self._had_pass = False
        self.in_module = 0

    @LOSSES.fence("looking at losses")
    def install(self, installed: Installed, look_at_input: functional_losses.LookAtInput) -> None:
        """Watch what computes losses until the step closes, and show what functional losses are given."""
        for loss in self._models.registered_losses:
            if not is_a(loss, torch.nn.modules.loss._Loss):
                self._watch_registered(loss, installed)
        # Code that is compiled in a step of training is guarded on what is in place there.
        if not (self._in_training and has_compiled()):
            functional_losses.watch(installed, self._after_function, look_at_input)

    @LOSSES.fence("saving losses that are not trained")
    def close(self) -> None:
        """Save what no backward pass has started from."""
        held, self._held = self._held, {}
        for node, loss in held.items():
            if loss.place == OWN_LOSS:
                self._save(loss.name if self._trained.is_ignored(loss.title) else UNNAMED_LOSS, loss.value)
            elif not (self._in_training or self._had_pass):
                # An evaluation without no_grad.
                self._save(self._evaluated_name(self._calls[node], loss.value), loss.value)
        why = "" if self._any or self._in_training else self._trained.why_unseen(self._called())
        if why:
            guard.say_once((self._trained, why), f"no loss is seen in evaluation: in training it {why}")

    # Loss modules.

    @LOSSES.fence("looking at losses")
    def before_module(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module is about to run."""
        self.in_module += 1
        self._save_io(type(module).__name__, "input", (args, kwargs))

    @LOSSES.fence("saving a loss")
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

    def _watch_registered(self, loss: torch.nn.Module, installed: Installed) -> None:
        kind = type(loss)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            if "__call__" not in vars(kind):
                # What all modules have may be replaced in the meantime.
                @unseen
                def original(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
                    inherited: Any = super(kind, module)
                    return inherited.__call__(*args, **kwargs)

            def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
                result = original(module, *args, **kwargs)
                if module is loss:
                    self._save_registered(module, result)
                return result

            return call

        installed.patch(kind, "__call__", wrap, why="what loss modules return is saved")

    @fence("saving a loss", LOSSES)
    def _save_registered(self, module: torch.nn.Module, output: Any) -> None:
        self._save(type(module).__name__, output)

    def _save(self, name: str, loss: Any) -> None:
        if graph_task() != -1:
            return
        self.is_saved(loss)
        self._save_loss(name, loss)

    # Losses that models return.

    @LOSSES.fence("looking at losses")
    def after_model(self, title: str, output: Any) -> None:
        """A model has returned this."""
        self._made_until = self._made_until or _next_number()
        for place, part in parts_of(output):
            if self._knows(part):
                continue
            if part.grad_fn is None:
                self._save_evaluated(title, place, part)
            else:
                node = identity(part.grad_fn)
                self._places[node] = (title, place)
                if place == OWN_LOSS:
                    # The program may go on computing in it.
                    self._held[node] = _Held(f"{title}_{OWN_LOSS}", place, title, part.detach().clone())
        inside, self._inside = self._inside, []
        for name, loss in inside:
            if not self._knows(loss):
                self._save(name, loss)

    def _save_evaluated(self, title: str, place: object, loss: torch.Tensor) -> None:
        if place == OWN_LOSS and self._trained.is_ignored(title):
            self._save(f"{title}_{OWN_LOSS}", loss)
        elif place == OWN_LOSS or self._trained.is_trained_place(title, place):
            self._save(UNNAMED_LOSS, loss)

    # Functional losses.

    @fence("saving a functional loss", LOSSES)
    def _after_function(self, call: FunctionCall, loss: Any) -> None:
        # Inside of a loss module it is the module's.
        if self.in_module or not is_a(loss, torch.Tensor) or is_opaque() or graph_task() != -1:
            return
        if loss.grad_fn is not None:
            self._hold(call, loss)
        elif not (self._in_training or loss.requires_grad):
            name = self._evaluated_name(call, loss)
            if self._recorder.position.inside:
                # Perhaps the model returns it as its loss.
                self._inside.append((name, loss))
            else:
                self._save(name, loss)

    def _evaluated_name(self, call: FunctionCall, loss: torch.Tensor) -> str:
        is_trained = loss.numel() == 1 and self._trained.is_trained_call(self._called(), call)
        return UNNAMED_LOSS if is_trained else call.function

    def _hold(self, call: FunctionCall, loss: torch.Tensor) -> None:
        node = identity(loss.grad_fn)
        self._calls[node] = call
        parts = sum(held.name == call.function for held in self._held.values())
        if loss.numel() == 1 and parts < _MOST_PARTS:
            self._held.setdefault(node, _Held(call.function, None, "", loss.detach().clone()))

    # Backward passes.

    @LOSSES.fence("looking at losses")
    def before_backward(self, tensors: Any) -> float:
        """Save the losses that a backward pass starts from; the scale that they, and so the gradients, have."""
        self._had_pass = True
        starts = list(tensors_in(tensors))
        scale = self._scales.scale_behind(starts)
        for tensor in starts:
            if not self._knows(tensor):
                own = self._learn(tensor)
                self._add(tensor)
                noted = self._scales.scaled(tensor)
                value = unscaled(tensor, scale) if noted is None else noted.value
                self._save_loss(UNNAMED_LOSS, value if own is None else own.value)
        self._save_parts(starts)
        return scale

    def _save_parts(self, starts: list[torch.Tensor]) -> None:
        """Save what the starts of a backward pass are the sum of."""
        if self._held and starts:
            # A sum of many losses has as many parts, each a few nodes from it.
            behind = {*nodes_behind(starts, NODES_OF_A_SUM * (1 + len(self._held)))}
            for node, held in [*self._held.items()]:
                if held.place == OWN_LOSS:
                    self._trained.learn_ignored(held.title)
                elif node in behind:
                    del self._held[node]
                    if node not in self._nodes:
                        self._save(held.name, held.value)

    def _learn(self, start: torch.Tensor) -> _Held | None:
        """Note what the start of a backward pass is made of; the model's own loss, if it is that."""
        known = {*self._places, *self._calls}
        node = origin(start.grad_fn, lambda node: identity(node) if identity(node) in known else None, _rescaled)
        titles = list(self._called())
        if node is None:
            self._learn_of_graph(titles, start)
            return None
        held = self._held.pop(node, None)
        if node in self._places:
            self._trained.learn_place(*self._places[node])
        else:
            self._trained.learn_function(titles, self._calls[node])
        if held is None or held.place != OWN_LOSS:
            return None
        self._nodes.add(node)
        return held

    def _learn_of_graph(self, titles: list[str], start: torch.Tensor) -> None:
        def known(node: Any) -> str | None:
            name: str = node.name()
            return name if functional_losses.calls_that_make(name) else None

        name = origin(start.grad_fn, known, _rescaled)
        if origin(start.grad_fn, lambda node: node.name() == _COMPILED or None, _rescaled_value):
            self._trained.learn_unseen(titles, "comes out of a compiled function")
        elif (
            name is None
            and self._made_until
            and start.grad_fn is not None
            and _number(start.grad_fn) < self._made_until
        ):
            self._trained.learn_unseen(titles, "is worked out inside of a model that does not return it")
        for call in functional_losses.calls_that_make(name or ""):
            self._trained.learn_function(titles, call)

    def _add(self, loss: torch.Tensor) -> None:
        self._any = True
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


def _rescaled(node: Any, operations: AbstractSet[str] = _RESCALING) -> Any:
    inputs = [source for source, _ in node.next_functions if source is not None]
    return inputs[0] if node.name() in operations and len(inputs) == 1 else None


def _number(node: Any) -> int:
    number: int = node._sequence_nr()
    return number


def _rescaled_value(node: Any) -> Any:
    """The same for what has one value all along."""
    return _rescaled(node, _OF_ONE_VALUE)
