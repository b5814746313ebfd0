"""Steps of the schedule that an optimizer's learning rate has, where it is known how many these are.

``usage/optimizer/<title>/schedule_length``  how many there are.
``usage/optimizer/<title>/schedule_steps``   how many of them were made before the step's update.
``usage/optimizer/<title>/schedule_factor``  where the length is only the largest whole number that a function refers
                                             to: by what that multiplies the rate of the step's update.
"""

from __future__ import annotations

from smd_agent.core.failure_domains import SETTINGS
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.step_events import AfterUpdate, BeforeUpdate, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.model.schedules import schedules


class ScheduleFacts(UsageProbe, domain=SETTINGS, doing="looking at the schedule of a learning rate"):
    """The schedules of one step that is saved; of each optimizer at its first update.

    Where the model is called by the update, as by a closure, only the end of the update is seen.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._told: set[str] = set()

    @on(BeforeUpdate, AfterUpdate)
    def look_at(self, update: BeforeUpdate | AfterUpdate) -> None:
        """Save how far the schedule of an optimizer has come, unless that has been done in this step."""
        title = title_of(update.optimizer)
        if title in self._told:
            return
        self._told.add(title)
        schedule = schedules.of(update.optimizer)
        if schedule is not None:
            numbers = {"schedule_length": schedule.length, "schedule_steps": schedule.steps}
            if schedule.factor is not None:
                numbers["schedule_factor"] = schedule.factor
            self._usage.save(f"optimizer/{title}", numbers)
