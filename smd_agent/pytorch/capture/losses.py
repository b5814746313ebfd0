"""The losses of a step that is saved.

Loss modules of ``torch.nn`` show theirs when they are called. Any other loss shows when ``backward`` starts from it. A
model that works out its loss itself, and returns it under the name "loss", shows it in both modes. What functions of
``torch.nn.functional`` return is a part of the loss that is trained, or in evaluation perhaps the same loss: see
``evaluation_losses``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from smd_agent import guard
from smd_agent.core.failure_domains import LOSSES
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import BeforeBackward, LossReturn, ModelReturn, Probe, StepEnd, on
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.capture.layer_values import ModuleValues
from smd_agent.pytorch.capture.loss_graph import KnownLosses, LossOrigins
from smd_agent.pytorch.capture.loss_outputs import parts_of
from smd_agent.pytorch.capture.loss_scaling import NODES_OF_A_SUM, Node, Scales, identity, nodes_behind, unscaled
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.capture.trained_losses import OWN_LOSS, FunctionCall
from smd_agent.pytorch.plain_access import LossModule
from smd_agent.pytorch.tracing import graph_task

UNNAMED_LOSS = "Loss"

# Parts of one name in a step; a model that asks for a loss in a loop would fill the step with them.
_MOST_PARTS = 16


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


class Losses(Probe, domain=LOSSES, doing="looking at losses"):
    """Saves each loss of a step once.

    It looks at every step that is saved, as what is trained in it gives losses of other steps their names.

    Args:
        models: the models that are trained.
        values: take the losses.
        known: those that are saved.
        scales: what scalers have done in the step.
        called: gives the titles of the models that were called in the step.
    """

    def __init__(
        self,
        models: TrainedModels,
        values: ModuleValues,
        known: KnownLosses,
        scales: Scales,
        called: Callable[[], Iterable[str]],
    ) -> None:
        self._models = models
        self._values = values
        self._known = known
        self._scales = scales
        self._called = called
        self._origins = LossOrigins(models.trained_losses, called)
        self._held: dict[Node, _Held] = {}
        self._inside: list[tuple[str, torch.Tensor]] = []
        self._in_training = models.recorder.position.clock.mode is ModeKeys.TRAIN
        self._had_pass = False

    @on(StepEnd, doing="saving losses that are not trained")
    def close(self, _: StepEnd) -> None:
        """Save what no backward pass has started from."""
        trained = self._models.trained_losses
        held, self._held = self._held, {}
        for node, loss in held.items():
            if loss.place == OWN_LOSS:
                self._save(loss.name if trained.is_ignored(loss.title) else UNNAMED_LOSS, loss.value)
            elif not (self._in_training or self._had_pass):
                # An evaluation without no_grad.
                self._save(self._evaluated_name(self._origins.call_of(node), loss.value), loss.value)
        why = "" if self._known.any or self._in_training else trained.why_unseen(self._called())
        if why:
            guard.say_once((trained, why), f"no loss is seen in evaluation: in training it {why}")

    @on(LossReturn, doing="saving a loss")
    def after_loss(self, done: LossReturn) -> None:
        """A loss module or a functional loss has returned."""
        if type(done.loss) is FunctionCall:
            self._after_function(done.loss, done.value)
        else:
            self._save(type(done.loss).__name__, done.value)

    def _save(self, name: str, loss: Any) -> None:
        if graph_task() == -1:
            self._known.add(loss)
            self._write(name, loss)

    def _write(self, name: str, loss: Any) -> None:
        """Save a loss as ``<name>_output_<i>``, whatever it is called."""
        for tensor_name, _ in self._values.outputs(name, loss):
            self._models.loss_names.put_in(tensor_name)
        self._values.save(name, "output", loss)

    # Losses that models return.

    @on(ModelReturn)
    def after_model(self, call: ModelReturn) -> None:
        """Save the losses in what a model has returned, or the whole if it computes one."""
        if call.name is not None and is_a(call.model, LossModule):
            self._save(call.name, call.outputs)
        self._origins.model_returned()
        for place, part in parts_of(call.outputs):
            if self._known.knows(part):
                continue
            if part.grad_fn is None:
                self._save_evaluated(call.title, place, part)
            else:
                node = identity(part.grad_fn)
                self._origins.add_place(node, call.title, place)
                if place == OWN_LOSS:
                    # The program may go on computing in it.
                    self._held[node] = _Held(f"{call.title}_{OWN_LOSS}", place, call.title, part.detach().clone())
        inside, self._inside = self._inside, []
        for name, loss in inside:
            if not self._known.knows(loss):
                self._save(name, loss)

    def _save_evaluated(self, title: str, place: object, loss: torch.Tensor) -> None:
        trained = self._models.trained_losses
        if place == OWN_LOSS and trained.is_ignored(title):
            self._save(f"{title}_{OWN_LOSS}", loss)
        elif place == OWN_LOSS or trained.is_trained_place(title, place):
            self._save(UNNAMED_LOSS, loss)

    # Functional losses.

    def _after_function(self, call: FunctionCall, loss: torch.Tensor) -> None:
        if loss.grad_fn is not None:
            self._hold(call, loss)
        elif not (self._in_training or loss.requires_grad):
            name = self._evaluated_name(call, loss)
            if self._models.recorder.position.inside:
                # Perhaps the model returns it as its loss.
                self._inside.append((name, loss))
            else:
                self._save(name, loss)

    def _evaluated_name(self, call: FunctionCall, loss: torch.Tensor) -> str:
        is_trained = loss.numel() == 1 and self._models.trained_losses.is_trained_call(self._called(), call)
        return UNNAMED_LOSS if is_trained else call.function

    def _hold(self, call: FunctionCall, loss: torch.Tensor) -> None:
        node = identity(loss.grad_fn)
        self._origins.add_call(node, call)
        parts = sum(held.name == call.function for held in self._held.values())
        if loss.numel() == 1 and parts < _MOST_PARTS:
            self._held.setdefault(node, _Held(call.function, None, "", loss.detach().clone()))

    # Backward passes.

    @on(BeforeBackward)
    def before_backward(self, backward: BeforeBackward) -> None:
        """Save the losses that a backward pass starts from."""
        self._had_pass = True
        starts = list(tensors_in(backward.tensors))
        scale = self._scales.scale_behind(starts)
        for tensor in starts:
            if not self._known.knows(tensor):
                own = self._own_loss(tensor)
                self._known.add(tensor)
                noted = self._scales.scaled(tensor)
                value = unscaled(tensor, scale) if noted is None else noted.value
                self._write(UNNAMED_LOSS, value if own is None else own.value)
        self._save_parts(starts)

    def _own_loss(self, start: torch.Tensor) -> _Held | None:
        """The model's own loss, if a backward pass starts from that; what else it starts from is learned."""
        node = self._origins.learn(start)
        held = None if node is None else self._held.pop(node, None)
        if node is None or held is None or held.place != OWN_LOSS:
            return None
        self._known.add_node(node)
        return held

    def _save_parts(self, starts: list[torch.Tensor]) -> None:
        """Save what the starts of a backward pass are the sum of."""
        if self._held and starts:
            # A sum of many losses has as many parts, each a few nodes from it.
            behind = {*nodes_behind(starts, NODES_OF_A_SUM * (1 + len(self._held)))}
            for node, held in [*self._held.items()]:
                if held.place == OWN_LOSS:
                    self._models.trained_losses.learn_ignored(held.title)
                elif node in behind:
                    del self._held[node]
                    if not self._known.has_node(node):
                        self._save(held.name, held.value)
