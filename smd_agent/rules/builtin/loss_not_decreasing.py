"""LossNotDecreasing: a loss that does not fall, or rises."""

from __future__ import annotations

import itertools
import math
import re
from collections import deque
from statistics import median

from smd_agent.analysis.unusual_tensors import middles, trend_of
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import (
    TRAINING,
    BuiltInRule,
    CollectionKeys,
    ModeKeys,
    Names,
    Need,
    Place,
    Severity,
    StepView,
)
from smd_agent.rules.evaluations import Thinned, of_training
from smd_agent.rules.known_parameters import known_parameters
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, flag, mode, percent, whole
from smd_agent.rules.series_view import LOSS, Course, SeriesView

# Of one call among those of a step.
_NUMBER = re.compile(r"_\d+$")
# Standard deviations of noise that a rise must stand out by.
_STANDS_OUT = 6.0
_PARTS = 5
# Of two numbers of which one is a multiple of the other, as float32 has them.
_ROUNDING = 1e-4
# A loss that is so many times the first one, and finite, is that of a training that diverges.
_MANY_TIMES = 100.0
# What a loss that had fallen is beside its best part, with the part of the fall that it has given back.
_LOST = ((2.0, 0.8), (10.0, 0.2))

_DIVERGED = "The training diverged: an update was too large, and later ones have made it worse"
_LOST_AGAIN = "The training had learned and has lost it again: an update was too large, or the data or the loss changed"
_SMALLER = "Lower the learning rate, warm it up, or clip the gradients; look at the schedule at the step of the rise"
_TURNED = "What is made smaller is this loss with the other sign"
_TURN = "Take the minus away from what the backward pass starts from, or maximize=True from the optimizer"


class LossNotDecreasing(BuiltInRule):
    """A loss that does not fall, or rises.

    What commands judge by is that the training loss ends higher than it began, as `ls` has it, by far more than it
    goes up and down from step to step. So is one that had fallen, and in its last fifth has given back most of that: it
    is above all losses of its best fifth, and 2 times it with 0.8 of the fall, or 10 times with 0.2. Losses of several
    optimizers work against each other, so they are left alone. So are several losses of a step, unless each is a
    multiple of the other: that is one loss, and one with the other sign tells that the sign is wrong. Steps that call
    other models are a training of their own, as a second task after the first one is; so are those from one on at which
    other parameters of a model are trained. Losses of evaluation sets are left out where there are those of the
    training. So is the loss of a model that acts, as what it is trained on changes as it learns: it is called without
    gradients and without a loss more often than it is trained, or before more than half of these steps.
    """

    meaning = "the training loss rises: the middle of its last fifth stands out above that of its first, or best, one"
    collection_names = Parameter.of_collections()
    tensor_regex = TENSOR_REGEX
    use_losses_collection = Parameter(flag, True, "look at the collection losses, too")
    num_steps = Parameter(
        whole, None, "steps between those compared, as documented of smdebug; the whole course otherwise", documented=10
    )
    diff_percent = Parameter(percent, 0.1, "least fall between those, in percent")
    increase_threshold_percent = Parameter(percent, 5.0, "largest rise between those, in percent")
    mode = Parameter(mode, "GLOBAL", "TRAIN, EVAL or GLOBAL: whose steps are compared then")
    brings_always = {"losses": {"save_interval": 500}}
    chosen_by = ("collection_names", "tensor_regex")
    needs = (Need((CollectionKeys.LOSSES,)),)
    fewest_steps = 10
    severity = Severity.WARNING
    evidence = {
        "first": "the loss that is compared with: the middle of the first fifth",
        "best": "the middle of the best fifth, of a loss that had fallen",
        "last": "the loss: the middle of the last fifth",
        "noise": "how far it goes up and down, as a standard deviation of such a middle",
        "percent": "how much it has changed, in percent of the first",
    }
    cause = "The learning rate is too high, the loss has the wrong sign, or the data gets harder"
    advice = "Lower the learning rate ten times; if it still rises, check the sign of the loss and of the gradients"
    short = "loss rises: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        if self.num_steps is not None:
            self.fewest_steps = 2
        self._courses: dict[tuple[str, Names], _Course] = {}
        self._before: dict[str, deque[tuple[int, float]]] = {}
        self._checked: dict[str, int] = {}
        self._optimizers: set[str] = set()
        self._calls = _Calls()
        self._trained: dict[str, frozenset[str]] = {}
        # The step at which what is trained changed last.
        self._begun: Place | None = None
        self._series: dict[ModeKeys, Course] = {}
        self._found_of_series: list[Place] = []

    def take_series(self, series: SeriesView) -> None:
        """Take in the loss of all steps."""
        if self.num_steps is None and self.use_losses_collection:
            self._series = {loss.mode: loss for one in series.courses(LOSS) if len(loss := one.finite)}
            self.steps_of_series = max(map(len, self._series.values()), default=0)

    def take(self, step: StepView) -> None:
        """Take in the losses of a step."""
        if self.num_steps is not None:
            if self.mode in ("GLOBAL", step.mode.name):
                self._compare_steps(step, self.num_steps)
        elif step.mode in TRAINING:
            self._take_notice(step)
            self._look_for_another_training(step)
            models = step.names(patterns=(f"^{USAGE}model/.*/training$",))
            for name, loss in step.numbers(of_training(self._losses(step), step.mode)).items():
                self._courses.setdefault((name, models), _Course()).add(step.place, loss)

    def pass_over(self, step: StepView) -> None:
        """Count the evaluation steps that have no loss."""
        if step.mode is ModeKeys.EVAL:
            self._calls.acts()
        if step.mode in TRAINING:
            self._take_notice(step)

    def end(self) -> None:
        """Judge the whole course; of the only loss of a training that over all steps, saved or not.

        A loss that is called several times in a step, as of each batch of which gradients are added up, is one.
        """
        for place in self._found_of_series:
            self.withdraw(place, LOSS)
        self._found_of_series = []
        most = max((course.steps for course in self._courses.values()), default=0)
        losses = {(_NUMBER.sub("", name), models) for name, models in self._courses}
        if len(losses) <= 1 and self.steps_of_series > most:
            for loss in self._series.values():
                begun = 0 if self._begun is None else self._begun.global_step
                last = loss.where(loss.global_steps >= begun)
                course = _Course.of(last) if len(last) else _Course()
                course.judge(self, LOSS, len(self._optimizers) <= 1 and not self._calls.are_those_of_one_that_acts, "")
                self._found_of_series += [] if course.found_at is None else [course.found_at]
            return
        for (name, models), course in self._courses.items():
            beside = (other for (_, called), other in self._courses.items() if called == models)
            factors = [course.factor_of(other) for other in beside]
            alone = len(self._optimizers) <= 1 and None not in factors and not self._calls.are_those_of_one_that_acts
            turned = any(factor is not None and factor < 0 for factor in factors)
            course.judge(self, name, alone, _TURNED if turned else "")

    def _look_for_another_training(self, step: StepView) -> None:
        """Begin anew where other parameters are trained than before."""
        for model, facts in known_parameters(step).items():
            trained = frozenset(name for name, fact in facts.items() if fact.requires_grad)
            if self._trained.setdefault(model, trained) != trained:
                self._trained[model] = trained
                self._begun = step.place
                for (name, _), course in self._courses.items():
                    if course.found_at is not None:
                        self.withdraw(course.found_at, name)
                self._courses.clear()

    def _take_notice(self, step: StepView) -> None:
        self._calls.trains()
        self._optimizers |= {name.split("/")[1] for name in step.names(CollectionKeys.OPTIMIZER)}

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


class _Calls:
    """Steps that call a model without a loss, and those that train it."""

    def __init__(self) -> None:
        self._acts = self._trains = 0
        # How often one that trains comes after one that does not.
        self._turns = 0
        self._has_acted = False

    def acts(self) -> None:
        self._acts += 1
        self._has_acted = True

    def trains(self) -> None:
        self._trains += 1
        self._turns += self._has_acted
        self._has_acted = False

    @property
    def are_those_of_one_that_acts(self) -> bool:
        return self._acts > self._trains or self._turns > self._trains / 2


class _Course:
    """A loss over the steps."""

    def __init__(self) -> None:
        self._losses: Thinned[tuple[Place, float]] = Thinned()
        self._last: Place | None = None
        # The step of what was found of it.
        self.found_at: Place | None = None

    @classmethod
    def of(cls, loss: Course) -> _Course:
        course = cls()
        course._losses = Thinned.of(len(loss), lambda row: (loss.place(row), float(loss.values[row])))
        course._last = loss.place(-1)
        return course

    def add(self, place: Place, loss: float) -> None:
        self._last = place
        self._losses.add((place, loss))

    @property
    def steps(self) -> int:
        """Number of steps that have the loss."""
        return self._losses.count

    def factor_of(self, other: _Course) -> float | None:
        """Return what this loss has to be multiplied by to be the other one at all steps, None if nothing does that."""
        kept = self._losses.items(), other._losses.items()
        pairs = [(own, theirs) for (_, own), (_, theirs) in zip(*kept, strict=False)]
        if self._losses.count != other._losses.count or not all(own for own, _ in pairs):
            return None
        factor = pairs[0][1] / pairs[0][0]
        same = all(abs(theirs - factor * own) <= _ROUNDING * abs(theirs) for own, theirs in pairs)
        return factor if same else None

    def judge(self, rule: LossNotDecreasing, name: str, alone: bool, cause: str) -> None:
        if self.found_at is not None:
            rule.withdraw(self.found_at, name)
        kept = self._losses.items()
        losses = [loss for _, loss in kept]
        if self._last is None or self._losses.count < rule.fewest_steps or not alone or not min(losses) > 0:
            return
        first, last = middles(losses, _PARTS)
        numbers, cause, begins = {"first": first, "last": last}, cause or rule.cause, 0
        if trend_of(losses) == "rises":
            jumps = [abs(later - earlier) for earlier, later in itertools.pairwise(losses)]
            numbers["noise"] = 1.4826 * median(jumps) / (2 * len(losses) / _PARTS) ** 0.5
            if not last - first > _STANDS_OUT * numbers["noise"]:
                return
            cause = _DIVERGED if last >= _MANY_TIMES * first and cause == rule.cause else cause
        else:
            lost = _lost_again(losses, first, last)
            if lost is None:
                return
            cause, (begins, numbers["best"]) = _LOST_AGAIN, lost
        numbers["percent"] = 100 * (last - first) / first
        self.found_at = kept[begins][0]
        advice = {rule.cause: rule.advice, _TURNED: _TURN}.get(cause, _SMALLER)
        steps = self._losses.count * (len(losses) - begins) // len(losses)
        rule.found(self.found_at, name, numbers, cause=cause, advice=advice, until=self._last, steps=steps)


def _lost_again(losses: list[float], first: float, last: float) -> tuple[int, float] | None:
    """Tell of positive losses that had fallen whether they have given back most of it.

    Args:
        losses: in their order.
        first, last: the middles of the first and the last fifth.

    Returns:
        Which one is the first to the end that is above all of the best fifth, and the middle of that; else None.
    """
    part = max(len(losses) // _PARTS, 2)
    parts = (losses[start : start + part] for start in range(len(losses) - 2 * part + 1))
    best, highest = min(((median(some), max(some)) for some in parts), default=(math.inf, math.inf))
    begins = len(losses)
    while losses[begins - 1] > highest:
        begins -= 1
    has_lost = any(last >= times * best and last - best >= given * (first - best) for times, given in _LOST)
    return (begins, best) if has_lost and first > best and len(losses) - begins >= part else None
