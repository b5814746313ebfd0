"""Models whose calls are not seen, as where compiled code or an own ``__call__`` is called: backward passes open steps.

A step begins with the first backward pass after an update. As long as no update has been seen, signs of the first one
are looked for (``model.first_update``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.guard import say_once
from smd_agent.pytorch import plain_access
from smd_agent.pytorch.discovery.transforms import TransformWatch
from smd_agent.pytorch.model import step_counter, train_or_eval
from smd_agent.pytorch.model.first_update import FirstUpdate
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import unwrapped
from smd_agent.pytorch.torch_compile import has_compiled

if TYPE_CHECKING:
    from smd_agent.pytorch.hook import Hook


class UnseenCalls:
    """The models of a program that were found by their parameters, not by a call.

    Args:
        transforms: tell whether calls are hidden in one.
        seen: called when calls of them are seen after all.

    Attributes:
        models: they themselves.
        uncounted: those of them without a counter, which gets in front of one that can be called where calls are seen.
        last_step: the step of the last backward pass.
    """

    def __init__(self, transforms: TransformWatch, seen: Callable[[], object]) -> None:
        self.models: list[TrackedModule] = []
        self.uncounted: list[TrackedModule] = []
        self.last_step = -1
        self._transforms = transforms
        self._seen = seen
        self._first_update = FirstUpdate()

    def count_calls_of(self, module: torch.nn.Module, hook: Hook | None) -> None:
        """Put the counter on a model that can be called where calls are seen, now that it is."""
        for tracked in self.uncounted:
            model = tracked.model
            if hook is not None and model is not None and unwrapped(module) is model:
                step_counter.attach(tracked, hook, module)
                self.uncounted.remove(tracked)
                self._seen()
                return

    def forget_gone(self) -> bool:
        """True if some are left without a counter, those that have gone aside."""
        self.uncounted = [tracked for tracked in self.uncounted if tracked.model is not None]
        return bool(self.uncounted)

    def open_step(self, function: str, hook: Hook | None) -> bool:
        """Open a step, unless the pass that begins belongs to the one that is open; True if it did."""
        self.models = [tracked for tracked in self.models if tracked.model is not None]
        if not self.models or function != "backward" or hook is None:
            return False
        position = hook.position
        is_new = position.step != self.last_step and position.clock is position.train
        counted = [tracked for tracked in self.models if tracked not in self.uncounted]
        if is_new and any(tracked.last == position.step for tracked in counted):
            # A call has opened the step since the last pass: calls are seen after all.
            self.models.clear()
            self._seen()
            return False
        if not self.pass_opens_step(hook):
            return False
        for tracked in self.models:
            called = position.step != self.last_step and tracked.last == position.step
            if called and tracked.model is not None and not plain_access.is_training(tracked.model):
                train_or_eval.follow_gradients(tracked)
        if names := ", ".join(tracked.names.title for tracked in self.models if not tracked.by_gradients):
            hook.selection.unfilled.explained.add(CollectionKeys.LAYERS)
            self._say_unseen(names)
        hook.begin_training_step()
        return True

    def pass_opens_step(self, hook: Hook | None) -> bool:
        """True if the next backward pass is the first of a step that no call has opened."""
        if hook is None or all(tracked.model is None for tracked in self.models):
            return False
        position = hook.position
        if position.clock is not position.train or not position.awaits_update:
            return True
        is_next = position.unsure and position.step == self.last_step
        return is_next and not self._first_update.is_to_come(self.models)

    def passed(self) -> None:
        """A backward pass is over, and no update has been seen yet."""
        self._first_update.passed(self.models)

    def _say_unseen(self, names: str) -> None:
        """Say that models of these names are trained and were never seen being called."""
        say_once(
            ("unseen calls", names),
            f"calls of {names} cannot be seen, {self._where_calls_hide()}: "
            "a step begins with the first backward pass after an update; "
            "weights, gradients and losses are saved, inputs and outputs are not",
        )

    def _where_calls_hide(self) -> str:
        if self._transforms.seen_call:
            return "as in a function that torch.func transforms"
        return (
            "as in a compiled function" if has_compiled() else "as where forward or an own __call__ is what is called"
        )
