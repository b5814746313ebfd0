"""A short look at a run: what the rules that are applied unasked say of as many steps as there is time for."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from smd_agent.analysis.trial import Trial
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.printable import count_of, shortened_within
from smd_agent.rules.built_in import TRAINING, BuiltInRule, Split
from smd_agent.rules.finding import Finding, Severity, about, alike
from smd_agent.rules.judging import Judging, Verdict, in_words
from smd_agent.rules.registry import rules_of_run
from smd_agent.rules.step_view import Limits, OutOfTime, RunView, StepView
from smd_agent.storage.index_files import StepIndex
from smd_agent.storage.worker_files_reader import read_failures

LARGEST_VALUE = 32 << 20
"""In bytes: of what is read within a tenth of a second."""

# Part of the time for finding the last loss, and as much for looking at it; and what there is for each in any case, in
# seconds. Both come first, and take a hundredth of that.
_AHEAD = 0.2
_AT_LEAST = 0.3
# How much of the clock's time that may take, where many others use the processors.
_CLOCK_TIMES = 20
# Part of the time that ends with the first steps; then the last one is looked at once more, with what is known of them.
_FOR_THE_FIRST = 0.85
# Among so many steps the last one with a loss is looked for.
_STEPS_BACK = 16
_PHRASES = 3
# In characters: of a name, and of all phrases.
_LONGEST_NAME = 40
_LONGEST = 130


CLOCK_TIMES = 3
"""How much of the clock's time a task may take: so many times its time of a processor, which others use, too."""


class Stopwatch:
    """A count of the time that a task has used, in the thread that makes this.

    The time is that of a processor, so that a task gets as far on a busy machine; and no more than `CLOCK_TIMES` as
    much by the clock, for waiting for a disk or a store takes no time of a processor.

    Args:
        seconds: that the task has.
        clock_times: as above, for what must not be missed.
    """

    def __init__(self, seconds: float, clock_times: float = CLOCK_TIMES) -> None:
        self._seconds = seconds
        self._clock_times = clock_times
        self._processor, self._clock = time.thread_time(), time.monotonic()

    @property
    def used(self) -> float:
        """The part of the time that is over, from 0 on; 1 or more when it is up."""
        if self._seconds <= 0:
            return 1.0
        processor, clock = time.thread_time() - self._processor, time.monotonic() - self._clock
        return max(processor, clock / self._clock_times) / self._seconds


@dataclass(frozen=True)
class ShortLook:
    """The outcome of a short look.

    Attributes:
        verdict: what rules say.
        looked: how many steps all of them have seen, which are the first ones.
        steps: how many there are.
        saw_last: whether the last one was looked at beside those, by rules that one step tells.
        unreadable: how many of the steps that were looked at cannot be read.
        failed: whether a part of the agent's failed in the run, so that something may be missing.
        for_lack: the rules that could not judge because what they look at was left out of the run, by its name.
    """

    verdict: Verdict
    looked: int
    steps: int
    saw_last: bool = False
    unreadable: int = 0
    failed: bool = False
    for_lack: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """True if everything was looked at that `check` looks at."""
        return self.looked == self.steps and not _left_out(self)

    @property
    def groups(self) -> list[list[Finding]]:
        """Problems and warnings, those that are alike together: the worst first, as in the verdict."""
        return alike(one for one in self.verdict.findings if one.severity is not Severity.NOTE)

    @property
    def notes(self) -> list[list[Finding]]:
        """The rest of them, where there is neither problem nor warning."""
        return [] if self.groups else alike(self.verdict.findings)


def look_shortly(
    trial: Trial,
    steps: Sequence[int],
    files_of: Callable[[int], Mapping[str, StepIndex]],
    seconds: float,
    *,
    one_worker: bool = False,
    attempt: Callable[[Callable[[], object]], Exception | None] | None = None,
    tell: Callable[[ShortLook], object] = bool,
) -> ShortLook:
    """Judge the first steps of a run, and the last one where there is no time for all.

    The losses of all steps, and whether the last one is finite, are looked at before anything else, so that there is
    always time for them.

    Args:
        trial: the run.
        steps: counted over all modes, in order.
        files_of: gives the files of a step by worker.
        seconds: that it may take, see `Stopwatch`; what has begun by then may last a tenth of a second more.
        one_worker: whether these are files of one worker of several: rules that must see all of them are left out.
        attempt: see `Judging`.
        tell: is told what is known before the steps are looked at, one by one.
    """
    rules = [rule for rule in rules_of_run(trial) if not (one_worker and rule.split is Split.RUN)]
    watch = Stopwatch(seconds)
    last = _last_steps(trial, steps, files_of, _watch_ahead(seconds))
    ahead = _look_ahead(trial, [rule for rule in rules if rule.one_step_tells], last, seconds, attempt)
    ends = [_FOR_THE_FIRST]
    limits = Limits(LARGEST_VALUE, lambda: watch.used < ends[0])
    judging = Judging(trial, rules, limits, attempt)
    judging.take_series()
    verdict = judging.verdict()
    _add_missing(verdict, ahead.findings)
    tell(ShortLook(verdict, 0, len(steps), bool(last)))
    looked, unreadable, saw_last = 0, 0, False
    try:
        for step in steps:
            limits.check()
            files = files_of(step)
            judging.take(step, files, _in_time(limits))
            looked += 1
            unreadable += not files
    except OutOfTime:
        ends[0] = 1.0
        saw_last = looked + 1 < len(steps)
        _look_at_last(judging, {step: files for step, files in last.items() if step > steps[looked]}, limits)
    verdict = judging.verdict()
    if saw_last:
        _add_missing(verdict, ahead.findings)
    failed, for_lack = bool(read_failures(trial.root)), _for_lack(verdict, trial.collection_manager.left_out)
    return ShortLook(verdict, looked, len(steps), saw_last, unreadable, failed, for_lack)


def _for_lack(verdict: Verdict, left_out: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in verdict.not_judged:
        for lack in one.lacking:
            if lack.held_by and all(name in left_out for name in lack.held_by):
                found.setdefault(", ".join(lack.held_by), []).append(one.rule)
    return found


def _add_missing(verdict: Verdict, found: Iterable[Finding]) -> None:
    """Add what was found at the last step, for which there was no time afterwards."""
    known = {(one.rule, one.tensor, one.mode, one.worker) for one in verdict.findings}
    missing = [one for one in found if (one.rule, one.tensor, one.mode, one.worker) not in known]
    verdict.findings = sorted((*verdict.findings, *missing), key=lambda one: one.order)


def _last_steps(
    trial: Trial, steps: Sequence[int], files_of: Callable[[int], Mapping[str, StepIndex]], watch: Stopwatch
) -> dict[int, Mapping[str, StepIndex]]:
    """Return the files of the last steps, from the last one on in which the training has a loss, in order."""
    run = RunView(trial)
    found: dict[int, Mapping[str, StepIndex]] = {}
    for step in reversed(steps[-_STEPS_BACK:]):
        if found and watch.used >= 1:
            break
        found[step] = files_of(step)
        views = [StepView(run, file) for file in found[step].values()]
        if any(view.mode in TRAINING and view.names(CollectionKeys.LOSSES) for view in views):
            return dict(reversed(found.items()))
    return {step: found[step] for step in steps[-1:]}


def _watch_ahead(seconds: float) -> Stopwatch:
    return Stopwatch(max(_AHEAD * seconds, _AT_LEAST), _CLOCK_TIMES)


def _look_ahead(
    trial: Trial,
    rules: Sequence[BuiltInRule],
    last: Mapping[int, Mapping[str, StepIndex]],
    seconds: float,
    attempt: Callable[[Callable[[], object]], Exception | None] | None,
) -> Verdict:
    """Return what rules say of the last steps by themselves."""
    watch = _watch_ahead(seconds)
    limits = Limits(LARGEST_VALUE, lambda: watch.used < 1)
    judging = Judging(trial, rules, limits, attempt)
    judging.take_series()
    _look_at_last(judging, last, limits)
    return judging.verdict()


def _in_time(limits: Limits) -> Callable[[BuiltInRule], bool]:
    def asks(rule: BuiltInRule) -> bool:
        limits.check()
        return True

    return asks


def _look_at_last(judging: Judging, last: Mapping[int, Mapping[str, StepIndex]], limits: Limits) -> None:
    in_time = _in_time(limits)
    try:
        for step, files in last.items():
            judging.take(step, files, lambda rule: in_time(rule) and rule.one_step_tells)
    except OutOfTime:
        return


def in_one_line(look: ShortLook, so_far: bool = False) -> str:
    """Return what a short look has found in a line of about 150 characters.

    ``so_far`` is whether the run goes on.
    """
    groups, verdict = look.groups, look.verdict
    where = _where(look)
    if not where and not (groups or verdict.judged):
        return "no rule could judge"
    number = count_of(len(groups), "finding") if groups else "no findings"
    said = f"{number}{' so far' * so_far}{' in what was saved' * look.failed}"
    if where:
        said += f" in {where}"
    elif not groups:
        said += f" in {count_of(len(verdict.judged), 'rule')} over {verdict.looked_at}"
    if groups:
        said += f": {_phrases(groups)}"
    notes = [f"{count_of(len(look.notes), 'note')}: {_phrases(look.notes)}"] if look.notes else []
    return "; ".join((said, *notes, *_left_out(look)))


def _where(look: ShortLook) -> str:
    if look.looked == look.steps:
        return ""
    first = f"the first {look.looked}" if look.looked > 1 else "the first" * look.looked
    parts = " and ".join(part for part in (first, "the last" * look.saw_last) if part)
    return f"{parts or 'a part of the first'} of {in_words(look.steps, look.verdict.losses)}"


def _left_out(look: ShortLook) -> list[str]:
    verdict, left = look.verdict, []
    if look.failed:
        left.append("a part of the agent failed, see check")
    for number, noun in ((look.unreadable, "step"), (len(verdict.problems), "value")):
        if number:
            left.append(f"{count_of(number, noun)} cannot be read")
    for names, rules in look.for_lack.items():
        left.append(f"not judged, as {names} was left out: {', '.join(rules)}")
    if verdict.passed_over:
        left.append(f"{count_of(len(verdict.passed_over), 'large tensor')} not read")
    for name, error in [*verdict.failed.items()][:1]:
        others = f" and {len(verdict.failed) - 1} more" if len(verdict.failed) > 1 else ""
        left.append(f"{name}{others} failed ({type(error).__name__})")
    return left


def _phrases(groups: Sequence[Sequence[Finding]]) -> str:
    """Return what was found, as far as it fits; at least the worst."""
    phrases = [_phrase(group) for group in groups]
    shown: list[str] = []
    for phrase in [*dict.fromkeys(phrases)][:_PHRASES]:
        if shown and len("; ".join((*shown, phrase))) > _LONGEST:
            break
        shown.append(phrase)
    left = sum(phrase not in shown for phrase in phrases)
    return "; ".join((*shown, *[f"and {left} more"] * bool(left)))


def _phrase(group: Sequence[Finding]) -> str:
    names = [*dict.fromkeys(about(one.tensor) for one in group if one.tensor is not None)]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return group[0].in_short(shortened_within(names[0], _LONGEST_NAME) + more if names else "")
