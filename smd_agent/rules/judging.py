"""Rules applied to a run, which may have ended or go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import (
    NoMoreData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smd_agent.printable import count_of, shortened
from smd_agent.rules.built_in import TRAINING, BuiltInRule, Split
from smd_agent.rules.finding import Finding, NotJudged, Severity
from smd_agent.rules.lines_of_programs import ProgramLines
from smd_agent.rules.series_view import SeriesView
from smd_agent.rules.step_view import OutOfTime, RunView, StepView
from smd_agent.storage.bundle_reader import bundles_in

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.rules.rule import Rule
    from smd_agent.rules.step_view import Limits
    from smd_agent.storage.index_files import StepIndex

_ONE_STEP = "makes the step again that went wrong"
_TRAINS = "trains again up to the step that went wrong"


@dataclass
class Verdict:
    """The verdict of rules on a run.

    Attributes:
        findings: the worst first, then by step.
        judged: the names of the rules that could judge.
        not_judged: the others, and what they lack.
        not_for_it: the names of those that are for other kinds of runs.
        steps: how many steps were looked at.
        losses: of how many training steps, saved or not, the loss was looked at.
        problems: what could not be read, each sentence once.
        failed: by the names of rules that have failed, their errors.
        passed_over: the names of tensors whose values were too large to be read.
    """

    findings: list[Finding] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)
    not_for_it: list[str] = field(default_factory=list)
    steps: int = 0
    losses: int = 0
    problems: list[str] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)
    passed_over: set[str] = field(default_factory=set)

    @property
    def has_problem(self) -> bool:
        """True if a finding is a problem."""
        return any(one.severity is Severity.PROBLEM for one in self.findings)

    @property
    def looked_at(self) -> str:
        """The number of steps in words; and of training steps whose loss the series has, where these are more."""
        return in_words(self.steps, self.losses)

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON."""
        return {
            "findings": [finding.to_json() for finding in self.findings],
            "judged": self.judged,
            "not_judged": [one.to_json() for one in self.not_judged],
            "not_for_it": self.not_for_it,
            "steps": self.steps,
            "losses": self.losses,
            "problems": self.problems,
        }


def in_words(steps: int, losses: int) -> str:
    """Return how many steps there are to look at, and of how many training steps the loss, if these are more."""
    if losses <= steps:
        return count_of(steps, "step")
    return f"{count_of(steps, 'saved step')} and the loss of {losses} training steps"


class Judging:
    """Rules that look at a run: steps are taken as they come, a verdict can be had at any time.

    Args:
        trial: the run.
        rules: of ours, made without a trial; and those of old programs, made for this one.
        limits: of what is read.
        attempt: calls a function and returns the error that it raised; a rule that raised one is asked no more. By
            default errors pass.
    """

    def __init__(
        self,
        trial: Trial,
        rules: Sequence[Rule],
        limits: Limits | None = None,
        attempt: Callable[[Callable[[], object]], Exception | None] | None = None,
    ) -> None:
        self._run = RunView(trial, limits)
        self._trial = trial
        self._attempt = _call if attempt is None else attempt
        self._failed: dict[str, Exception] = {}
        self._built_in = [rule for rule in rules if isinstance(rule, BuiltInRule)]
        self._old = [_OldRule(rule) for rule in rules if not isinstance(rule, BuiltInRule)]
        self._parts: list[dict[str, BuiltInRule]] = [{} for _ in self._built_in]
        self._last: dict[str, int] = {}
        self._steps = 0
        self._series: dict[str, SeriesView] = {}
        self._lines = ProgramLines()

    def take_new(
        self,
        progress: Callable[[int, int], None] | None = None,
        incomplete: bool = False,
        goes_on: Callable[[], bool] | None = None,
    ) -> None:
        """Look at the steps that have not been looked at.

        Args:
            progress: is told how many of them are done, of how many.
            incomplete: whether those are meant too that some workers may yet write.
            goes_on: tells, after each, whether there is time for one more; the others are looked at the next time.
        """
        self._trial.maybe_refresh()
        self.take_series()
        table = self._trial.step_table
        oldest = min(self._last.values(), default=-1)
        steps = [step for step in table.steps(ModeKeys.GLOBAL, incomplete) if step > oldest or not self._last]
        for done, step in enumerate(steps):
            if progress is not None:
                progress(done, len(steps))
            self.take(step, self._trial.step_table.files(step))
            if goes_on is not None and not goes_on():
                break

    def take_series(self) -> None:
        """Look at the series: what has come since the last look is judged together with what was there before."""
        failure = self._attempt(self._look_at_series)
        if failure is not None:
            self._failed["the series"] = failure

    def _look_at_series(self) -> None:
        for worker, table in self._trial.series_of_steps().items():
            if worker in self._series and self._series[worker].table is table:
                continue
            view = self._series[worker] = SeriesView(worker, table, kept_in(self._trial))
            for rule, parts in zip(self._built_in, self._parts, strict=True):
                if rule.rule_name not in self._failed and rule.split is not Split.RUN:
                    part = parts.setdefault(worker, rule.fresh())
                    self._ask(rule, partial(part.take_series, view))

    def take(
        self, step: int, files: Mapping[str, StepIndex], asks: Callable[[BuiltInRule], bool] = lambda rule: True
    ) -> None:
        """Look at the files of one step that have not been looked at.

        Args:
            step: counted over all modes; no step before it is looked at any more.
            files: by worker.
            asks: which rules look at it, asked before each.

        Raises:
            OutOfTime: the limits have been reached; some rules may have seen the step.
        """
        new = {worker: file for worker, file in sorted(files.items()) if step > self._last.get(worker, -1)}
        for worker, file in new.items():
            self._last[worker] = step
            view = StepView(self._run, file)
            self._lines.take(view)
            for rule, parts in zip(self._built_in, self._parts, strict=True):
                if rule.rule_name not in self._failed and asks(rule):
                    own = "" if rule.split is Split.RUN else worker
                    if own not in parts:
                        parts[own] = rule.fresh()
                    self._ask(rule, partial(parts[own].offer, view))
        if new:
            self._steps += 1
            for old in self._old:
                old.take(self._trial, step)

    def _ask(self, rule: BuiltInRule, question: Callable[[], object]) -> None:
        failure = self._attempt(question)
        if isinstance(failure, OutOfTime):
            raise failure
        if failure is not None:
            self._failed[rule.rule_name] = failure

    def verdict(self) -> Verdict:
        """Return what can be said by now."""
        losses = max((part.steps_of_series for parts in self._parts for part in parts.values()), default=0)
        verdict = Verdict(steps=self._steps, losses=losses, problems=[*self._run.problems])
        known = self._trial.collections()
        for rule, parts in zip(self._built_in, self._parts, strict=True):
            for part in parts.values():
                failure = self._attempt(part.end)
                if failure is not None:
                    self._failed.setdefault(rule.rule_name, failure)
            if rule.rule_name in self._failed:
                continue
            verdict.findings += [finding for part in parts.values() for finding in part.findings]
            most = max(parts.values(), key=lambda part: part.progress, default=rule)
            if any(part.has_judged for part in parts.values()):
                verdict.judged.append(rule.rule_name)
            elif not most.fits(known):
                verdict.not_for_it.append(rule.rule_name)
            else:
                verdict.not_judged.append(most.not_judged())
        for old in self._old:
            old.add_to(verdict)
        self.add_lines(verdict.findings)
        verdict.failed.update(self._failed)
        verdict.passed_over |= self._run.passed_over
        verdict.findings.sort(key=lambda one: one.order)
        return verdict

    def add_lines(self, findings: Iterable[Finding]) -> None:
        """Tell findings the lines of the program that they are about, as far as these steps have them."""
        losses = self._trial.collections().get(CollectionKeys.LOSSES)
        for finding in findings:
            # Those that are saved are lines of the training.
            if finding.mode in TRAINING:
                finding.line = self._lines.of(finding, losses)


def _call(action: Callable[[], object]) -> None:
    action()


class _OldRule:
    """A rule of an old program: it says at which steps its condition is met, and nothing else."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._finding: Finding | None = None
        self._judged = self._ended = False

    def take(self, trial: Trial, step: int) -> None:
        if self._ended:
            return
        try:
            self._rule.invoke(step)
            self._judged = True
        except RuleEvaluationConditionMet as met:
            self._judged, self._ended = True, met.end_of_rule
            if self._finding is None:
                name = self._rule.rule_name
                self._finding = Finding(
                    name, Severity.PROBLEM, None, ModeKeys.GLOBAL, "", step, step, global_step=step, steps=0
                )
            self._finding.last_step = step
            self._finding.steps += 1
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable, NoMoreData):
            return

    def add_to(self, verdict: Verdict) -> None:
        if self._judged:
            verdict.judged.append(self._rule.rule_name)
        else:
            verdict.not_judged.append(NotJudged(self._rule.rule_name, "what it looks at was not saved at any step"))
        if self._finding is not None:
            verdict.findings.append(self._finding)


def kept_in(trial: Trial) -> dict[int, str]:
    """The training steps of a run whose losses a step explains that can be made again, and what does that, in words."""
    command = f"python -m smd_agent replay {shortened(trial.path)}"
    # What gradients have spoilt is seen in the loss of the step after.
    return {
        bundle.step + bool(bundle.gradients): f"{command} {_ONE_STEP if bundle.model else _TRAINS}"
        for bundle in bundles_in(trial.root).values()
    }
