"""ScheduleNotReached: a schedule of the learning rate that was made for every update and is stepped once an epoch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from smd_agent.rules.built_in import TRAINING, ModeKeys, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.series_view import LEARNING_RATE, LOSS, SeriesView
from smd_agent.rules.usage import Numbers, RuleOfUsage

# A warm-up that has not come further at the end has hardly begun; nor has a fall of the rate that has left so much.
_WARM, _LEFT = 0.5, 0.8
_NEVER = "The schedule is as long as the training has updates, and is never stepped"


class ScheduleNotReached(RuleOfUsage):
    """A schedule of the learning rate that was made for every update and is stepped once an epoch.

    It is judged once the run has ended, by the updates since the first step that was saved. A run that ended early has
    made as many steps as updates, and one whose schedule counts epochs has many more updates than that is long. The
    number of updates has to be about the length: else a training by epochs that ended early would look the same.

    Of a function that multiplies the rate, such as LambdaLR's, the length is the largest whole number that it refers
    to. It has to be the number of updates, but for one, and the rate has to show that the schedule has hardly begun: it
    only rises, and stays below half of what was set, or it only falls, and by a fifth at most.
    """

    meaning = "a schedule has about as many steps as there were updates, and few of them were made when the run ended"
    shortest = Parameter(whole, 20, "steps of the shortest schedule that is looked at")
    share = Parameter(number, 0.2, "largest share of the schedule, and of the updates, that its steps may be")
    margin = Parameter(number, 0.1, "by what part of the length the number of updates may differ from it")
    modes = TRAINING
    fewest_steps = 3
    severity = Severity.WARNING
    kind = "optimizer"
    facts = ("schedule_steps",)
    evidence = {
        "schedule_length": "how many steps the schedule has",
        "schedule_steps": "how many of them were made",
        "updates": "how many updates were made, as far as they are known",
    }
    cause = "The schedule is as long as the training has updates, and is stepped once an epoch"
    advice = 'Call scheduler.step() after each optimizer.step(); in Lightning, give it "interval": "step"'
    short = "schedule of the learning rate hardly begun: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._schedules: dict[tuple[str, ModeKeys], _Schedule] = {}
        self._last_saved: dict[ModeKeys, int] = {}
        self._last_known: dict[ModeKeys, int] = {}
        self._has_ended: Callable[[], bool] = bool

    def take_series(self, series: SeriesView) -> None:
        """Take in how many steps there were, saved or not."""
        for name in (LEARNING_RATE, LOSS):
            for course in series.courses(name):
                self._last_known[course.mode] = max(course.place(-1).step, self._last_known.get(course.mode, 0))

    def take(self, step: StepView) -> None:
        """Look at the schedules of a step."""
        self._has_ended = step.run_has_ended
        self._last_saved[step.mode] = step.place.step
        super().take(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one."""
        length, made = numbers.get("schedule_length"), numbers.get("schedule_steps")
        if length is None or made is None:
            return
        known = self._schedules.get((of, step.mode))
        if known is None or known.length != length or made < known.made:
            # The program has made another one for a training that comes later.
            known = self._schedules[of, step.mode] = _Schedule(step.place, length, made)
        known.last, known.made = step.place, made
        if "schedule_factor" in numbers:
            known.factors.append(numbers["schedule_factor"])
        known.steps += 1

    def end(self) -> None:
        """Judge each schedule as the run has left it."""
        for (of, mode), schedule in self._schedules.items():
            tensor = f"usage/{of}/schedule_steps"
            if schedule.found_at is not None:
                self.withdraw(schedule.found_at, tensor)
                schedule.found_at = None
            updates = self._updates(mode, schedule)
            if self._has_ended() and self._is_hardly_begun(schedule, updates):
                schedule.found_at = schedule.first
                numbers = {"schedule_length": schedule.length, "schedule_steps": schedule.made, "updates": updates}
                cause = "" if schedule.made else _NEVER
                self.found(schedule.first, tensor, numbers, cause=cause, until=schedule.last, steps=schedule.steps)

    def _updates(self, mode: ModeKeys, schedule: _Schedule) -> int:
        last = schedule.last.step
        if last == self._last_saved[mode]:
            # Else the training that goes on to the end is another one.
            last = max(last, self._last_known.get(mode, 0))
        return last - schedule.first.step + 1

    def _is_hardly_begun(self, schedule: _Schedule, updates: int) -> bool:
        seen = schedule.last.step - schedule.first.step
        return (
            schedule.length >= self.shortest
            and abs(updates - schedule.length) <= (1 if schedule.factors else self.margin * schedule.length)
            and (not schedule.factors or _shows_its_begin(schedule.factors))
            and 2 * seen >= updates
            and schedule.made <= self.share * schedule.length
            and schedule.made - schedule.made_at_first <= self.share * seen
        )


class _Schedule:
    """A schedule over the saved steps."""

    def __init__(self, first: Place, length: float, made: float) -> None:
        self.first = self.last = first
        self.length = length
        self.made_at_first = self.made = made
        self.steps = 0
        self.found_at: Place | None = None
        self.factors: list[float] = []


def _shows_its_begin(factors: list[float]) -> bool:
    """Tell whether a rate only rises and is still low, or only falls and is still high."""
    first, last = factors[0], factors[-1]
    rises = all(one <= other for one, other in pairwise(factors))
    falls = all(one >= other for one, other in pairwise(factors))
    return (rises and 0 <= first < last <= _WARM) or (falls and 0 < _LEFT * first <= last < first)
