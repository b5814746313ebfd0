"""Hooks on all optimizers, and the patch of the call of loss modules.

They come and go with the steps that are saved. Once the program uses ``torch.compile`` they stay and pass everything on
between the saved steps: compiled code is guarded on them, so that removing them would have it compiled anew. The hooks
stay as long as the program has other threads, too: an optimizer of one of them may be walking the dict that they would
be taken out of, which ends its update with an error.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.error_boundary import own_failure
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch import hook_numbers
from smd_agent.pytorch.model.step_counter import counter_of
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.plain_access import LossModule
from smd_agent.pytorch.torch_compile import compiler, has_compiled, is_compiling, is_dynamo_compiling, leave_uncompiled


class Listener(Protocol):
    """The events that a step that is being saved wants to know of."""

    def before_optimizer(self, optimizer: Any) -> None:
        """Gradients are about to be used, or (with a closure) have just been."""

    def about_to_compile(self) -> None:
        """The program is about to compile."""

    def before_update(self, optimizer: Any) -> None:
        """Parameters are about to be updated."""

    def after_update(self, optimizer: Any) -> None:
        """The parameters have been updated."""

    def before_loss(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss module of ``torch.nn`` is about to run."""

    def after_loss(self, module: torch.nn.Module, loss: Any) -> None:
        """The loss has run."""


class _Watch:
    """The one of the process.

    Attributes:
        listener: the step that is reported to, which is the one that began last.
    """

    def __init__(self) -> None:
        # An evaluation may be saved while a training step waits for its update.
        self._listeners: list[Listener] = []
        self.listener: Listener | None = None
        self._installed = Installed()
        self._is_installed = False
        self._handles: list[Any] = []
        self._stays = False

    def begin(self, listener: Listener, amid: bool) -> None:
        """Report to this step; ``amid``: until it ends, after which it is reported to the one before again."""
        self._report_to([*self._listeners, listener] if amid else [listener])
        self.install()

    def end(self, listener: Listener) -> None:
        """Report no more to this step."""
        self._report_to([other for other in self._listeners if other is not listener])
        if not (self._listeners or self.stays):
            self._installed.close()
            self._is_installed = False
            # Nor while an optimizer of this thread is calling its hooks: they go with the next step that is saved.
            if not (updates.in_progress() or _has_other_threads()):
                while self._handles:
                    self._handles.pop().remove()

    def _report_to(self, listeners: list[Listener]) -> None:
        self._listeners = listeners
        self.listener = listeners[-1] if listeners else None

    def stay(self) -> None:
        """Put everything in place for good: the program is about to compile."""
        self._stays = True
        for listener in self._listeners:
            listener.about_to_compile()
        self.install()

    def install(self) -> None:
        """Put everything in place, if it is not."""
        self.register()
        if not self._is_installed:
            self._installed.patch(LossModule, "__call__", _wrap_loss_call, why="what loss modules return is saved")
            self._is_installed = True

    def register(self) -> None:
        """Put the hooks in place, if they are not: best before any thread trains."""
        if not self._handles:
            before = hook_numbers.register(register_optimizer_step_pre_hook, _before_optimizer)
            self._handles = [before, hook_numbers.register(register_optimizer_step_post_hook, _after_optimizer)]

    @property
    def stays(self) -> bool:
        """True if everything is in place for good, as the program has compiled or is about to."""
        return self._stays or has_compiled()


watch = _Watch()


def _has_other_threads() -> bool:
    """True if the program has threads beside this one."""
    me = threading.current_thread()
    return any(thread is not me and not thread.name.startswith("smd_agent") for thread in threading.enumerate())


# A compiler that traces these folds its first test to True and sees nothing else.


@unseen
def _before_optimizer(optimizer: Any, args: Any, kwargs: Any) -> None:
    try:
        if is_dynamo_compiling() or compiler._is_compiling_flag:
            return
        if watch.listener is not None:
            # With a closure, the gradients that it will use are yet to be computed.
            _tell(optimizer, args, kwargs, False)
    except BaseException as error:
        if own_failure(error) is None:
            raise


@unseen
def _after_optimizer(optimizer: Any, args: Any, kwargs: Any) -> None:
    try:
        if is_dynamo_compiling() or compiler._is_compiling_flag:
            return
        if watch.listener is not None:
            _tell(optimizer, args, kwargs, True)
    except BaseException as error:
        if own_failure(error) is None:
            raise


leave_uncompiled(_before_optimizer)
leave_uncompiled(_after_optimizer)


@fence("looking at an optimizer", STEPS)
def _tell(optimizer: Any, args: Any, kwargs: Any, after: bool) -> None:
    if watch.listener is not None and _has_closure(args, kwargs) is after:
        watch.listener.before_optimizer(optimizer)
    if watch.listener is not None:
        (watch.listener.after_update if after else watch.listener.before_update)(optimizer)


def _has_closure(args: Any, kwargs: Any) -> bool:
    return any(callable(value) for value in (*args[1:], *kwargs.values()))


def _wrap_loss_call(original: Any) -> Any:
    if "__call__" not in vars(LossModule):
        # What all modules have may be replaced in the meantime.
        @unseen
        def original(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return torch.nn.Module.__call__(module, *args, **kwargs)

    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        # A loss with trained parameters has a counter, which has it captured.
        if is_compiling() or watch.listener is None or counter_of(module) is not None:
            return original(module, *args, **kwargs)
        watch.listener.before_loss(module, args, kwargs)
        result = original(module, *args, **kwargs)
        # The call may have opened the next step.
        if watch.listener is not None:
            watch.listener.after_loss(module, result)
        return result

    return call
