"""Parameters of models whose calls are not seen, while no update of them has been seen either."""

from __future__ import annotations

from collections.abc import Iterable

from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.updates import updates


class FirstUpdate:
    """Tells of backward passes whether the first update is yet to come, so that they are of one step.

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
