"""StalledTrainingRule: a run to which nothing is added for a long time."""

from __future__ import annotations

import time

from smd_agent.rules.built_in import BuiltInRule, Place, Severity, Split, StepView
from smd_agent.rules.parameters import Parameter, flag, whole


class StalledTrainingRule(BuiltInRule):
    """A run to which nothing is added for a long time.

    Steps are compared by the times at which they were saved. The last one of a run that has not ended is compared with
    the clock, where the run as a whole is judged: a program that was killed looks like one that stands still.
    """

    meaning = "between two saved steps, or since the last one of a run that has not ended, there is a long silence"
    threshold = Parameter(whole, 1800, "longest silence, in seconds")
    stop_training_on_fire = Parameter(flag, False, "not available: it needs a service of the cloud")
    training_job_name_prefix: Parameter[str | None] = Parameter(str, None, "accepted, of no effect here")
    only_by_name = True
    split = Split.RUN
    severity = Severity.WARNING
    evidence = {"silence": "seconds until the next step was saved, or until now"}
    cause = "The program waits, such as for data, a lock or another worker; or it was stopped or killed"
    advice = "Look at what the process does, such as with py-spy dump; save more often if steps take so long"

    def start(self) -> None:
        """Begin with nothing seen."""
        if self.stop_training_on_fire and self._run is not None:
            self.logger.warning(
                "smd_agent: %s cannot stop the training: that needs a service of the cloud", self.rule_name
            )
        self._last: tuple[float, Place] | None = None
        self._ended = False

    def take(self, step: StepView) -> None:
        """Compare the time of a step with that of the one before."""
        self._ended = step.run_has_ended()
        now = step.saved_at()
        if now is None:
            return
        if self._last is not None and now - self._last[0] > self.threshold:
            self.found(step, None, {"silence": now - self._last[0]})
        self._last = (max(now, self._last[0]) if self._last else now, step.place)

    def end(self) -> None:
        """Compare the last step with the clock."""
        if self._last is None or self._ended:
            return
        silence = time.time() - self._last[0]
        if silence > self.threshold and self.finding_of(self._last[1]) is None:
            self.found(self._last[1], None, {"silence": silence})
