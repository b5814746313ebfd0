"""Calls of models whose steps are not counted: what is computed after them is no part of the step that is open.

After the update a program may evaluate a part of its model, or a model that it does not train. In an evaluation it may
go on with a copy of the model, such as the best one of a training, which is loaded at its end.
"""

from __future__ import annotations

import torch
from torch.optim.swa_utils import AveragedModel

from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import Until
from smd_agent.guard import say_once
from smd_agent.pytorch.capture.ports import TrainedModels
from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.model.module_calls import CallWatch
from smd_agent.pytorch.model.step_counter import counter_of
from smd_agent.pytorch.model.wrappers import class_name, unwrapped
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import is_training, parameter_ids, parameters, parts
from smd_agent.pytorch.torch_compile import is_compiling
from smd_agent.pytorch.tracing import graph_task


class OutsideCalls:
    """Looks for such calls in one step that is saved.

    Args:
        models: the models that are trained.

    Attributes:
        seen: whether there has been one.
    """

    def __init__(self, models: TrainedModels) -> None:
        self.seen = False
        self._models = models
        self._step = models.recorder.position.step
        why = "what a model without steps computes is no part of the step"
        self._calls = CallWatch(self._look_at, why, Until.STEP_CLOSES)

    def begin(self) -> None:
        """Look at the calls of modules."""
        self._calls.begin()

    def end(self) -> None:
        """Leave them alone again."""
        self._calls.end()

    @fence("looking at a call of a model", LAYERS)
    def _look_at(self, module: torch.nn.Module) -> None:
        position = self._models.recorder.position
        # Layers of a model whose call has opened the step are no models, what is around a model opens one, and a step
        # that waits for an evaluation to end has nothing to do with what is called in that.
        if (
            self.seen
            or position.inside
            or position.step != self._step
            or is_compiling()
            or graph_task() != -1
            or any(counter_of(part) is not None for part in parts(module))
            or self._models.left_out()
            or any(module is loss for loss in self._models.registered_losses)
            or not parameter_ids(module)
        ):
            return
        if position.updated:
            self.seen = not self._may_become_known(module)
        elif position.clock is position.evaluation and position.clock is not position.train:
            self.seen = class_name(module) in self._models.classes_trained()
        if self.seen and not torch.is_grad_enabled():
            self._tell_of(module)

    def _tell_of(self, module: torch.nn.Module) -> None:
        """Say of a model that is evaluated in the place of the trained one that its calls are no steps."""
        kind = class_name(module)
        instead = is_a(module, AveragedModel) or kind in self._models.classes_gone()
        if instead and not any(map(was_given, parameters(module))):
            line = f"{kind} is evaluated, which nothing trains: its calls are no steps, and its losses are not saved"
            say_once(("evaluated copy", kind), line)

    def _may_become_known(self, module: torch.nn.Module) -> bool:
        """True if the search for models is yet to see it: the step may go on with it, and else another one begins."""
        if not (torch.is_grad_enabled() and is_training(unwrapped(module))):
            return False
        return updates.may_come_to(parameter_ids(module) - self._models.trained_params())
