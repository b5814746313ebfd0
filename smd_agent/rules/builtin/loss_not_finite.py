"""LossNotFinite: a loss that is NaN or infinite."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, ModeKeys, Need, Severity, StepView
from smd_agent.rules.finding import Finding
from smd_agent.rules.inputs_of_models import model_inputs
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.series_view import GRADIENT, LOSS, Course, SeriesView
from smd_agent.rules.usage import numbers_of

_WEIGHTS = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
# What a loss that diverges has grown to, beside the first one.
_DIVERGED = 100.0
# A loss that goes up and down has not grown.
_NOISE = 2.0
# So many finite losses show whether it does.
_ENOUGH = 3
# Of a number in every step: what it has grown to, beside the middle of so many steps before.
_GROWN = 10.0
_USUAL = 20

_CAUSES = {
    "weights": (
        "Weights were not finite before this loss was computed: an earlier update has broken them",
        "Lower the learning rate or clip the gradients; in float16, check that the loss is scaled",
    ),
    "between": (
        "Weights have turned not finite since the last saved step, at which the loss had not grown:"
        " rather by a batch or an overflow than by the learning rate",
        "Run it again with every step saved from the last finite one on, and with inputs, to see what is first",
    ),
    "inputs": (
        "The batch itself holds values that are not finite, while the weights do not",
        "Look for NaN and Inf in the data of this step, and in what prepares it",
    ),
    "ignored": (
        "All labels of this batch have the value that the loss ignores, so that it is the mean of none: 0 divided by 0",
        "Divide the sum of the losses by the number of labels, or by 1 where there is none, or leave such batches out;"
        " check the length to which texts are cut",
    ),
    "diverged": (
        "The loss had grown many times over before: the training diverged",
        "Lower the learning rate, warm it up, or clip the gradients",
    ),
    "unknown": (
        "The weights were finite: the batch, or a function such as log, sqrt or a division at 0",
        "Save inputs and outputs of this step, and look for the first that is not finite",
    ),
    "early": (
        "The weights were finite, and too few losses came before to show whether the training diverged: an update that"
        " was too large, the batch, or a function such as log, sqrt or a division at 0",
        "Lower the learning rate ten times, which tells the first from the others; save inputs and outputs of this step"
        " too, and look for the first that is not finite",
    ),
    "told": (
        "At step {step}, {culprit}",
        "Look at this operation and at what it is given; that step is as it was before the update",
    ),
    "backward": (
        "The loss was finite one step before, and its gradients were not: a derivative such as that of sqrt, norm or"
        " log at 0, or of a division by 0",
        "Add a small number inside of sqrt, norm, log and divisions; torch.autograd.set_detect_anomaly names the place",
    ),
    "growing": (
        "The gradients had grown many times over in the steps before: the training diverged",
        "Lower the learning rate, warm it up, or clip the gradients",
    ),
    "sudden": (
        "The loss was as before one step earlier: rather a batch, an overflow, or a function such as log, sqrt or a"
        " division at 0 than the learning rate",
        "Save this step with inputs and outputs, as with --every 1, and look for the first that is not finite",
    ),
    "soon": (
        "Too few losses came before to show whether the training diverged: an update that was too large, the batch, or"
        " a function such as log, sqrt or a division at 0",
        "Lower the learning rate ten times, which tells the first from the others; save this step with inputs and"
        " outputs, as with --every 1, and look for the first that is not finite",
    ),
    "nothing known": (
        "Not known, as no weights were saved at this step",
        "Save weights and inputs too, which tell an update that broke the weights from a batch that has NaN",
    ),
}


# What tells more than the advice of causes that are guesses.
_AGAIN = "{command}, and names the operation, the line and the rows of the batch"
# Those that an operation does not tell better.
_KNOWN = ("diverged", "growing", "ignored")
_SEEN = ("ignored", "inputs")
# Those that end in weights which are not finite.
_OF_UPDATES = ("backward", "diverged", "growing")
_NEVER = (
    "This metric cannot be computed of this data, as an AUC where all labels are of one class, or divides by 0;"
    " early stopping and schedules that go by it go by nothing"
)
_LOOK_AT_LABELS = "Count the labels of that data, and look at what the metric is given"


# What the training has found when it happened.
_CULPRIT = "recorder/blame"


class _Last(NamedTuple):
    step: int
    loss: float
    first: float
    finite: int


class LossNotFinite(BuiltInRule):
    """A loss that is NaN or infinite."""

    meaning = (
        "a loss has an element that is NaN or infinite; a warning if later ones are finite again, or if a metric is"
        " never finite"
    )
    brings = {"losses": {}, "weights,biases": {"reductions": "abs_mean,nan_count,inf_count"}}
    needs = (Need((CollectionKeys.LOSSES, CollectionKeys.METRICS), ("", "abs_mean", "l2", "mean")),)
    one_step_tells = True
    evidence = {
        "last_finite_step": "the last step before it at which the loss was known to be finite",
        "last_finite_loss": "the loss at that step",
        "others": "how many other tensors of the step were looked at",
        "others_not_finite": "how many of them are not finite either",
    }

    def start(self) -> None:
        """Begin with nothing seen."""
        self._last: dict[tuple[str, ModeKeys], _Last] = {}
        self._courses: dict[ModeKeys, Course] = {}
        # Why, by the numbers of the series.
        self._causes: dict[ModeKeys, str] = {}
        self._first_bad: dict[ModeKeys, int] = {}
        # At how many steps a metric was not finite; 0 once it is.
        self._never_finite: dict[tuple[str, ModeKeys], int] = {}
        self._culprit: tuple[str, str] | None = None
        # What makes the step again, in words, by mode.
        self._again: dict[ModeKeys, str] = {}

    def pass_over(self, step: StepView) -> None:
        """A step has no losses: perhaps it has the culprit of one that was not saved."""
        self._look_for_culprit(step)

    def take_series(self, series: SeriesView) -> None:
        """Look at the loss of all steps."""
        for loss in series.courses(LOSS):
            self._courses[loss.mode] = loss
            self.steps_of_series = max(self.steps_of_series, len(loss))
            self.withdraw(loss.place(0), LOSS)
            bad = loss.not_finite()
            if bad.size:
                self._report_course(series, loss, bad)

    def _report_course(self, series: SeriesView, loss: Course, bad: npt.NDArray[np.int64]) -> None:
        before = loss.before(bad[0]).finite
        short, evidence = "loss not finite at step {step}", {}
        if len(before):
            short += f" (finite at {before.steps[-1]})"
            evidence = {"last_finite_step": int(before.steps[-1]), "last_finite_loss": float(before.values[-1])}
        stays = bad[-1] == len(loss) - 1
        finding = self.found(
            *(loss.place(bad[0]), LOSS, evidence),
            severity=Severity.PROBLEM if stays else Severity.WARNING,
            short=short,
            until=loss.place(bad[-1]),
            steps=bad.size,
        )
        self._causes[loss.mode] = _cause_in(series, before)
        self._first_bad[loss.mode] = int(loss.steps[bad[0]])
        command = series.kept.get(int(loss.steps[bad[0]])) if loss.mode is not ModeKeys.EVAL else None
        if command is not None:
            self._again[loss.mode] = _AGAIN.replace("{command}", command)
        self._explain(finding, self._causes[loss.mode])

    def take(self, step: StepView) -> None:
        """Look at the losses and metrics of a step."""
        self._look_for_culprit(step)
        self._look_at_metrics(step)
        losses = step.names(CollectionKeys.LOSSES)
        bad = not_finite(step, losses)
        for name, loss in step.numbers(losses).items():
            if math.isfinite(loss):
                last = self._last.get((name, step.mode))
                self._last[name, step.mode] = _Last(
                    step.step, loss, last.first if last else loss, 1 + (last.finite if last else 0)
                )
        for name in losses:
            known = self.finding_of(step, name)
            if name in bad:
                if known is None:
                    self._report(step, name)
                else:
                    self.found(step, name).severity = Severity.PROBLEM
            elif known is not None:
                known.severity = Severity.WARNING

    def _look_for_culprit(self, step: StepView) -> None:
        text = step.single(_CULPRIT) if _CULPRIT in step.names() else None
        if text is not None and self._culprit is None:
            self._culprit = str(step.step), str(text)
            of_series = self.finding_of(step, LOSS)
            if of_series is not None:
                self._explain(of_series, self._causes.get(step.mode, "told"))
            else:
                self._explain(self.found(step, short="loss not finite at step {step}"), "told")

    def _explain(self, finding: Finding, cause: str) -> None:
        """Say why, by the culprit where there is one."""
        finding.cause, finding.advice = _CAUSES[cause]
        again = self._again.get(finding.mode)
        if again is not None:
            finding.advice = f"{finding.advice}; {again}" if cause in _KNOWN else again
        if self._culprit is not None:
            told, advice = _CAUSES["told"]
            number, text = self._culprit
            told = told.replace("{step}", number).replace("{culprit}", text)
            # The operation that overflows at last is not why a training diverges.
            is_known = cause in _KNOWN
            finding.cause = f"{finding.cause}. {told}" if is_known else told
            finding.advice = finding.advice if is_known else advice

    def _look_at_metrics(self, step: StepView) -> None:
        metrics = step.without(step.names(CollectionKeys.METRICS), step.names(CollectionKeys.LOSSES))
        bad = not_finite(step, metrics)
        for name in metrics:
            known = self._never_finite.get((name, step.mode), -1)
            if name not in bad or known == 0:
                self._never_finite[name, step.mode] = 0
                self.withdraw(step, name)
                continue
            times = self._never_finite[name, step.mode] = max(known, 0) + 1
            if times >= _ENOUGH:
                short = f"{name} is never finite"
                self.found(step, name, severity=Severity.WARNING, cause=_NEVER, advice=_LOOK_AT_LABELS, short=short)

    def _report(self, step: StepView, name: str) -> None:
        last = self._last_finite(step, name)
        known = self._culprit is not None and self._culprit[1].startswith("loss")
        short = f"loss not finite at step {self._culprit[0] if self._culprit and known else '{step}'}"
        if last is not None:
            short += f" (finite at {last.step})"
        # Before anything else is read, for which there may be no time.
        finding = self.found(step, name, short=short)
        others = step.without(step.names(), step.names(CollectionKeys.LOSSES))
        bad = not_finite(step, others)
        finding.evidence |= {"others": len(others), "others_not_finite": len(bad)}
        if last is not None:
            finding.evidence |= {"last_finite_step": last.step, "last_finite_loss": last.loss}
        cause = self._cause(step, bad, last)
        of_steps_before = self._causes.get(step.mode, "")
        if cause == "weights" and of_steps_before in _OF_UPDATES and self._first_bad[step.mode] == step.step:
            # Why the update has broken them.
            cause = of_steps_before
        self._explain(finding, cause)
        of_series = self.finding_of(step, LOSS)
        if of_series is not None and cause in _SEEN:
            # What the step shows is more than what numbers of steps before it lead to expect.
            self._causes[step.mode] = cause
            self._explain(of_series, cause)
        if self._culprit is not None:
            self.withdraw(step)

    def _last_finite(self, step: StepView, name: str) -> _Last | None:
        """Return the last step at which a loss was finite; of the only one of a training, saved or not."""
        last, course = self._last.get((name, step.mode)), self._courses.get(step.mode)
        if course is None or len(step.names(CollectionKeys.LOSSES)) > 1:
            return last
        before = course.before(int(np.searchsorted(course.steps, step.step))).finite
        if not len(before) or (last is not None and last.step >= before.steps[-1]):
            return last
        return _Last(int(before.steps[-1]), float(before.values[-1]), float(before.values[0]), len(before))

    @staticmethod
    def _cause(step: StepView, bad: dict[str, dict[str, float]], last: _Last | None) -> str:
        weights = step.names(*_WEIGHTS)
        diverged = last is not None and abs(last.loss) > _DIVERGED * abs(last.first)
        if bad.keys() & {*weights}:
            return "between" if last is not None and _was_well(last, step) else "weights"
        if bad.keys() & {*model_inputs(step)}:
            return "inputs"
        if any(numbers.get("labels") == 0 for numbers in numbers_of(step, "loss").values()):
            return "ignored"
        if diverged:
            return "diverged"
        if not weights:
            return "nothing known"
        return "early" if last is not None and last.finite < _ENOUGH else "unknown"


def _cause_in(series: SeriesView, before: Course) -> str:
    """Tell the likely cause by numbers of the steps before the first loss that is not finite.

    Args:
        series: of the worker.
        before: the finite losses.
    """
    if not len(before):
        return "nothing known"
    sizes, step = np.abs(before.values), before.global_steps[-1]
    if sizes[-1] > _DIVERGED * sizes[0] or _has_grown(sizes):
        return "diverged"
    norms = series.course(GRADIENT, before.mode)
    if norms is not None and step in norms.global_steps:
        own = norms.before(int(np.searchsorted(norms.global_steps, step)) + 1)
        if not math.isfinite(own.values[-1]):
            return "backward"
        if _has_grown(own.finite.values):
            return "growing"
    return "sudden" if len(before) >= _ENOUGH else "soon"


def _has_grown(sizes: npt.NDArray[np.float64]) -> bool:
    usual = sizes[-_USUAL - 1 : -1]
    return usual.size >= _ENOUGH and bool(sizes[-1] > _GROWN * np.median(usual))


def _was_well(last: _Last, step: StepView) -> bool:
    """Tell whether the loss gave no sign of diverging, some steps before this one."""
    return last.finite >= _ENOUGH and abs(last.loss) <= _NOISE * abs(last.first) and last.step + 1 < step.step
