"""The end of a PyTorch training that somebody asks for: by its trainer, or before an optimizer's update."""

from __future__ import annotations

from collections.abc import Callable

from smd_agent.framework.foreign_trainers import end_after_step, goes_on
from smd_agent.pytorch.optimizer_watch import updates


class Stopper:
    """Ends the trainings of this process."""

    def after_step(self) -> str:
        """Have the trainer of another library end its loop when the current step is over; its name, "" if none runs."""
        return end_after_step()

    def is_ignored(self) -> bool:
        """True if that trainer goes on all the same."""
        return goes_on()

    def before_update(self, end: Callable[[], object]) -> bool:
        """Have ``end`` called before the next update; False amid one, as where a closure computes the loss."""
        if updates.in_progress():
            return False
        updates.end_before_next(end)
        return True
