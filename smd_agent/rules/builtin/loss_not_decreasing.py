"""LossNotDecreasing: a loss that does not fall, or rises."""

from __future__ import annotations

import itertools
from collections import deque
from statistics import median

from smd_agent.analysis.course import middles, trend_of
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.rules import parameters
from smd_agent.rules.built_in import BuiltInRule, Need, Split
from smd_agent.rules.finding import Severity
from smd_agent.rules.kept_evenly import KeptEvenly
from smd_agent.rules.parameters import COLLECTION_NAMES, TENSOR_REGEX, Parameter
from smd_agent.rules.step_view import Names, Place, StepView

# Standard deviations of noise that a rise must stand out by.
_STANDS_OUT = 6.0
_PARTS = 5


class LossNotDecreasing(BuiltInRule):
    """A loss that does not fall, or rises.

    What commands judge by is that the training loss ends higher than it began, as `ls` has it, by far more than it
    goes up and down from step to step. Losses of several optimizers work against each other, so they are left alone.
    """

    meaning = "the training loss rises: the middle of its last fifth stands out above that of its first one"
    parameters = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        Parameter("use_losses_collection", parameters.flag, True, "look at the collection losses, too"),
        Parameter(
            "num_steps",
            parameters.whole,
            None,
            "steps between those compared, as documented of smdebug; the whole course otherwise",
            documented=10,
        ),
        Parameter("diff_percent", parameters.percent, 0.1, "least fall between those, in percent"),
        Parameter("increase_threshold_percent", parameters.percent, 5.0, "largest rise between those, in percent"),
        Parameter("mode", parameters.mode, "GLOBAL", "TRAIN, EVAL or GLOBAL: whose steps are compared then"),
    )
    needs = (Need((CollectionKeys.LOSSES,)),)
    fewest_steps = 10
    split = Split.WORKER
    severity = Severity.WARNING
    evidence = {
        "first": "the loss that is compared with: the middle of the first fifth",
        "last": "the loss: the middle of the last fifth",
        "noise": "how far it goes up and down, as a standard deviation of such a middle",
        "percent": "how much it has changed, in percent of the first",
    }
    cause = "The learning rate is too high, the loss has the wrong sign, or the data gets harder"
    advice = "Lower the learning rate ten times; if it still rises, check the sign of the loss and of the gradients"
    short = "loss rises: {}"

    collection_names: tuple[str, ...] | None
    tensor_regex: tuple[str, ...] | None
    use_losses_collection: bool
    num_steps: int | None
    diff_percent: float
    increase_threshold_percent: float
    mode: str

    def start(self) -> None:
        """Begin with nothing seen."""
        if self.num_steps is not None:
            self.fewest_steps = 2
        self._courses: dict[str, _Course] = {}
        self._before: dict[str, deque[tuple[int, float]]] = {}
        self._checked: dict[str, int] = {}
        self._optimizers: set[str] = set()

    def take(self, step: StepView) -> None:
        """Take in the losses of a step."""
        if self.num_steps is not None:
            if self.mode in ("GLOBAL", step.mode.name):
                self._compare_steps(step, self.num_steps)
        elif step.mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL):
            self._optimizers |= {name.split("/")[1] for name in step.names(CollectionKeys.OPTIMIZER)}
            for name, loss in step.numbers(self._losses(step)).items():
                self._courses.setdefault(name, _Course()).add(step.place, loss)

    def end(self) -> None:
        """Judge the whole course."""
        for name, course in self._courses.items():
            course.judge(self, name, alone=len(self._optimizers) <= 1 and len(self._courses) == 1)

    def _losses(self, step: StepView) -> Names:
        collections = (*(self.collection_names or ()), *((CollectionKeys.LOSSES,) * self.use_losses_collection))
        patterns = self.tensor_regex or ()
        return step.names(*collections, patterns=patterns) if collections or patterns else ()

    def _compare_steps(self, step: StepView, distance: int) -> None:
        now = step.place.global_step if self.mode == "GLOBAL" else step.step
        for name, loss in step.numbers(self._losses(step)).items():
            before = self._before.setdefault(name, deque())
            before.append((now, loss))
            while len(before) > 1 and before[1][0] <= now - distance:
                before.popleft()
            if before[0][0] > now - distance or now < self._checked.get(name, now):
                continue
            self._checked[name] = now + distance
            first = before[0][1]
            percent = 100 * (loss - first) / abs(first) if first else 0.0
            if percent > -self.diff_percent or percent > self.increase_threshold_percent:
                self.found(step, name, {"first": first, "last": loss, "percent": percent})


class _Course:
    """A loss over the steps."""

    def __init__(self) -> None:
        self._losses: KeptEvenly[float] = KeptEvenly()
        self._first: Place | None = None
        self._last: Place | None = None

    def add(self, place: Place, loss: float) -> None:
        self._first = self._first or place
        self._last = place
        self._losses.add(loss)

    def judge(self, rule: LossNotDecreasing, name: str, alone: bool) -> None:
        if self._first is None or self._last is None or self._losses.count < rule.fewest_steps:
            return
        rule.withdraw(self._first, name)
        losses = self._losses.items()
        if not alone or trend_of(losses) != "rises" or min(losses) <= 0:
            return
        first, last = middles(losses, _PARTS)
        jumps = [abs(later - earlier) for earlier, later in itertools.pairwise(losses)]
        noise = 1.4826 * median(jumps) / (2 * len(losses) / _PARTS) ** 0.5
        if last - first > _STANDS_OUT * noise:
            percent = 100 * (last - first) / first
            evidence = {"first": first, "last": last, "noise": noise, "percent": percent}
            found = rule.found(self._first, name, evidence)
            found.last_step, found.steps = self._last.step, self._losses.count
