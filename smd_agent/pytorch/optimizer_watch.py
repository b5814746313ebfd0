"""Watch on the optimizers of the process: their updates end the training steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.optimizer_turns import UpdateRounds
from smd_agent.framework.replaced_functions import is_replaced, replace
from smd_agent.framework.series_pauses import Paused, ToldUpdates
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.interpreter.callers import callers
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.living_objects import living
from smd_agent.pytorch import hook_numbers
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import optimized
from smd_agent.pytorch.torch_compile import compiler, is_dynamo_compiling, leave_uncompiled
from smd_agent.pytorch.update_marks import UpdateMarks

_OPTIMIZERS_FILE = torch.optim.Optimizer.step.__code__.co_filename


class Trained(Protocol):
    """Has the steps that updates end; a hook.

    Attributes:
        saves_last: whether it asks if its models are as the last update has left them.
    """

    saves_last: bool

    @property
    def steps(self) -> TrainingSteps:
        """The steps of its training."""

    def trained_params(self) -> set[int]:
        """Ids of the parameters of the models that it knows."""

    def parameters_by_model(self) -> Iterable[Iterable[torch.Tensor]]:
        """The parameters of each of these models."""

    def updated_without_call(self, parameters: set[int]) -> None:
        """These have been updated, and no model that it knows has been called since the last update."""


class UpdateListener(Paused, Protocol):
    """Is told of every update, in saved steps and in others; it raises nothing."""

    def before_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer is about to update its parameters, called with these arguments."""

    def after_update(self, optimizer: Any, ends: bool) -> None:
        """An optimizer has updated its parameters; ``ends``: and with that the current training step has ended."""

    def scaler_steps(self, scaler: Any) -> None:
        """A scaler is about to have an optimizer update its parameters, or to skip that."""

    def update_skipped(self, optimizer: Any) -> None:
        """A scaler has skipped an update."""


class _Updates(ToldUpdates[UpdateListener]):
    """The one of the process.

    Attributes:
        rounds: of the optimizers.
        marks: what the last update has left.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rounds = UpdateRounds(self._takes_part)
        # Called before the next update.
        self._end: Callable[[], object] | None = None
        self.marks = UpdateMarks()
        self._trained: Trained | None = None
        # Of what is trained, once that is known.
        self._position = RunPosition(ModeClock(ModeKeys.GLOBAL))
        # Of models that have been called, if only without gradients.
        self._in_use: dict[int, weakref.ref[torch.Tensor]] = {}
        self._registered = self._registered_before = False
        # Whether optimizers are told of as they are made, and else whether they have been looked for.
        self._told = False
        self._looked = False

    @property
    def step(self) -> int:
        """The number of the training step that is under way, or was the last one."""
        return self._position.train.step

    def have_changed(self, parameter: torch.Tensor) -> bool:
        """True if an optimizer that has this parameter has updated."""
        return self.rounds.has_updated(lambda optimizer: id(parameter) in ids_of(optimizer))

    def follow(self, trained: Trained) -> None:
        """Have the updates that come end the steps of this hook, which has got a model."""
        self._trained = trained
        self._position = trained.steps.position
        self._looked = False
        self._position.unsure = True
        self.marks.follow(trained.parameters_by_model if trained.saves_last else None)
        own = trained.trained_params()
        # An optimizer that has a scheduler lives on until the garbage collector runs.
        self.rounds.keep(lambda optimizer: not own.isdisjoint(ids_of(optimizer)))
        self._watch()

    def tell(self, listener: UpdateListener) -> None:
        """Tell this one, and no other, from now on."""
        super().tell(listener)
        self._watch()
        self._register_before()

    def end_before_next(self, end: Callable[[], object]) -> None:
        """Have this called before the next update, which it keeps from taking place by raising."""
        self._end = end
        self._register_before()

    def _watch(self) -> None:
        self._register()
        if not is_replaced(torch.amp.GradScaler, "step"):
            why = "a step ends also where a scaler skips the update"
            replace(torch.amp.GradScaler, "step", self._wrap_scaler_step, why=why)

    def expect(self, before: bool) -> None:
        """Optimizers are told of by ``add`` as they are made; none has been.

        Args:
            before: whether something may want to know of updates that begin.
        """
        self._told = True
        self._register()
        if before:
            self._register_before()

    # An optimizer of another thread that is calling its hooks walks the dict that these come into, and its update ends
    # with an error: before the first is made, none does.

    def _register(self) -> None:
        if not self._registered:
            hook_numbers.register(register_optimizer_step_post_hook, self._make_hook())
            self._registered = True

    def _register_before(self) -> None:
        if not self._registered_before:
            hook_numbers.register(register_optimizer_step_pre_hook, self._make_hook_before())
            self._registered_before = True

    def add(self, optimizer: Any) -> None:
        """Take note of an optimizer that has been made."""
        self.rounds.add(optimizer)

    def evaluated(self, parameters: Iterable[torch.Tensor]) -> None:
        """A model that nothing has trained yet has been called without gradients."""
        for parameter in parameters:
            if self._is_in_use(id(parameter)):
                # It has been called before: such calls may be many, and this one is to cost nothing.
                return
            self._in_use[id(parameter)] = weakref.ref(parameter)

    def goes_on_with(self, own: set[int]) -> bool:
        """True if a round that has ended goes on with a model that alone has these parameters, and is called now."""
        return self.rounds.go_on(lambda optimizer: not own.isdisjoint(ids_of(optimizer)))

    def may_come_to(self, own: set[int]) -> bool:
        """True if an optimizer that has not updated yet has some of these parameters."""
        return self.rounds.may_come(lambda optimizer: not own.isdisjoint(ids_of(optimizer)))

    def has_optimizer(self) -> bool:
        """True if there is an optimizer."""
        self._look_for_optimizers()
        return self.rounds.has_optimizer

    def _look_for_optimizers(self) -> None:
        """A look through all objects where nobody tells of optimizers, once for each model that becomes known."""
        if self._told or self._looked or self._trained is None:
            return
        self._looked = True
        own = self._trained.trained_params()
        for found in living(torch.optim.Optimizer):
            if own & ids_of(found):
                self.add(found)

    def in_progress(self) -> bool:
        """True if an optimizer's update is under way, which may call the model; it takes a walk up the stack."""
        return any(frame.f_code.co_filename == _OPTIMIZERS_FILE for frame in callers())

    def _make_hook_before(self) -> Callable[..., None]:
        def before_update(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                # First, so that a compiler that traces this folds it to True and sees nothing else.
                if is_dynamo_compiling() or compiler._is_compiling_flag:
                    return
                if self._end is not None:
                    end, self._end = self._end, None
                    end()
                if self.listener is not None:
                    self.listener.before_update(optimizer, args, kwargs)
            except BaseException as error:
                if own_failure(error) is None:
                    raise

        leave_uncompiled(unseen(before_update))
        return before_update

    def _make_hook(self) -> Callable[..., None]:
        rounds, marks = self.rounds, self.marks

        def after_update(optimizer: Any, args: Any, kwargs: Any) -> None:
            try:
                # First, so that a compiler that traces this folds it to True and sees nothing else.
                if is_dynamo_compiling() or compiler._is_compiling_flag:
                    return
                listener, position = self.listener, self._position
                usual = not (position.unsure or position.updated)
                if usual and rounds.only == id(optimizer) and position.clock is position.train:
                    # As ``TrainingSteps.updated`` does it.
                    position.awaits_update = False
                    position.updated = True
                    if marks.wanted:
                        marks.renew()
                    if listener is not None:
                        listener.after_update(optimizer, True)
                    elif self.rest:
                        self.count_rest()
                else:
                    if listener is not None:
                        listener.after_update(optimizer, False)
                    self._updated(optimizer)
            except BaseException as error:
                if own_failure(error) is None:
                    raise
                # Else the next call of the model would go on with this step.
                self._updated(optimizer)

        leave_uncompiled(unseen(after_update))
        return after_update

    @fence("looking at an optimizer's update", STEPS, again=True)
    def _updated(self, optimizer: Any) -> None:
        if self._trained is not None:
            self._look_for_optimizers()
            if self._position.updated:
                self._trained.updated_without_call(ids_of(optimizer))
            self._trained.steps.updated(optimizer)
            if self.marks.wanted:
                self.marks.note()
        if self.rest and self._position.updated:
            # Updates do not end steps one by one any more.
            self.go_on()

    def _wrap_scaler_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            before = self._mark()
            if self.listener is not None:
                self.listener.scaler_steps(scaler)
            result = original(scaler, optimizer, *args, **kwargs)
            if before is not None and before == self._mark():
                if self.listener is not None:
                    self.listener.update_skipped(optimizer)
                self._updated(optimizer)
            return result

        return step

    def _mark(self) -> tuple[int, bool] | None:
        if self._trained is None:
            return None
        return self.rounds.updates, self._trained.steps.position.awaits_update

    def _takes_part(self, candidate: Any, updating: Any) -> bool:
        own = ids_of(candidate)
        if self._trained is None or not own.isdisjoint(ids_of(updating)):
            return False
        return any(map(self._is_in_use, own)) or not own.isdisjoint(self._trained.trained_params())

    def _is_in_use(self, key: int) -> bool:
        reference = self._in_use.get(key)
        return reference is not None and reference() is not None


def ids_of(optimizer: Any) -> set[int]:
    """The ids of an optimizer's parameters."""
    return {*map(id, optimized(optimizer))}


updates = _Updates()
