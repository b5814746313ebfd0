"""Questions on what the current step saves, and the next ones will; base of the recorder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.plan import Group, SavePlan
from smd_agent.core.turns import in_turn

if TYPE_CHECKING:
    from smd_agent.core.selection import Selection


class StepQuestions:
    """What a run saves of a step.

    Args:
        selection: what is saved.
        position: where the run stands.

    Attributes:
        selection, position: the same.
        turn: the lock of what changes the selection or the step.
    """

    def __init__(self, selection: Selection, position: RunPosition) -> None:
        self.selection = selection
        self.position = position
        # Two trainings may run in one process, and users' threads save too.
        self.turn: threading.RLock = selection.turn
        self._due = 0
        self._plan: SavePlan | None = None

    def wants(self, name: str) -> bool:
        """Whether the current step saves a tensor of this name."""
        return self.position.saving and self._current_plan().includes(name, self._due)

    def ever_saves(self, collection: str) -> bool:
        """Whether a collection is saved at some step."""
        return collection in self.selection.names

    def ever_wanted(self, names: frozenset[str]) -> frozenset[str]:
        """Those of several names that are in a collection that is saved, at whatever step."""
        return self._current_plan().included(names)

    def next_step_wants(self, clock: ModeClock) -> Callable[[str], bool]:
        """Tells of a tensor's name whether the clock's next step saves it; nothing is begun."""
        plan = self._current_plan()
        due = plan.due(clock.mode, clock.step + 1)
        return lambda name: plan.includes(name, due)

    def collections_due(self) -> set[str]:
        """Names of the collections that the current step saves."""
        return self._current_plan().names_of(self._due) if self.position.saving else set()

    def shares_due(self) -> bool:
        """Whether the current step saves shares of the channels of some tensors."""
        return self.position.saving and self._current_plan().shares_due(self._due)

    def group(self, names: tuple[str, ...]) -> Group:
        """What the current step saves of tensors that come together."""
        return self._current_plan().group(names, self._due)

    def takes(self, name: str) -> bool:
        """Whether the current step saves a tensor of this name, whose collections may be new."""
        plan = self._current_plan()
        plan.forget(name)
        if not self.position.saving:
            return False
        self._due |= plan.due(self.position.clock.mode, self.position.clock.step)
        return plan.how(name, self._due) is not None

    def _current_plan(self) -> SavePlan:
        plan = self.selection.plan()
        return plan if plan is self._plan else self._take_plan(plan)

    @in_turn
    def _take_plan(self, plan: SavePlan) -> SavePlan:
        self._plan = plan
        if self.position.saving:
            # The open step goes by the new plan, whose collections may be numbered otherwise.
            self._due = plan.due(self.position.clock.mode, self.position.clock.step)
        return plan
