"""Models whose calls are not seen, as where compiled code or an own ``__call__`` is called: backward passes open steps.

A step begins with the first backward pass after an update. As long as no update has been seen, signs of the first one
are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import torch

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.pytorch import plain_access
from smd_agent.pytorch.discovery.transforms import TransformWatch
from smd_agent.pytorch.model import step_counter, train_or_eval
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import unwrapped
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import apart

if TYPE_CHECKING:
    from smd_agent.pytorch.hook import Hook


class UnseenCalls:
    """The models of a program that were found by their parameters, not by a call.

    Args:
        transforms: say why their calls cannot be seen.
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
            self._transforms.say_unseen(names)
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


class FirstUpdate:
    """The signs, in the models' parameters, that the first update is yet to come, so that passes are of one step.

    Updates of compiled code are never seen: where parameters have changed without one, every pass is a step.
    """

    def __init__(self) -> None:
        self._versions: dict[int, int] = {}
        self._is_hidden = False

    @apart
    def passed(self, models: Iterable[TrackedModule]) -> None:
        """A backward pass is over; note how its models' parameters are."""
        if not self._is_hidden:
            self._versions = _versions_of(models)

    @apart
    def is_to_come(self, models: Iterable[TrackedModule]) -> bool:
        """True if an optimizer has these models' parameters that has updated none, and they are as they were."""
        if self._is_hidden:
            return False
        now = _versions_of(models)
        self._is_hidden = any(self._versions.get(key, version) != version for key, version in now.items())
        return not self._is_hidden and updates.may_come_to({*now})


def _versions_of(models: Iterable[TrackedModule]) -> dict[int, int]:
    return {id(parameter): parameter._version for tracked in models for _, parameter in tracked.parameters()}
