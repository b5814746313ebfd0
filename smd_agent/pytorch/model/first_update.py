"""Signs that the first update of models is yet to come: until then neither a backward pass nor a change ends a step.

What an optimizer changes before it has updated anything, as SAM does, is of the step of its first update.
"""

from __future__ import annotations

from collections.abc import Iterable

from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.torch_compile import has_compiled


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


def is_to_come_after_a_move(models: Iterable[TrackedModule]) -> bool:
    """True if an optimizer has parameters of these models, which have changed for the first time, without an update.

    It may move them first and update them from there, as SAM does.
    """
    if has_compiled() or not updates.has_optimizer():
        # Of an optimizer that is compiled only what it changes is seen, and one that is gone updates no more.
        return False
    return any(was_given(parameter) for tracked in models for _, parameter in tracked.parameters())
