"""Rules applied to a run by the processes of a Dask cluster, each of which reads the run by itself.

A task is some rules on one worker's steps. A rule whose ``split`` is one tensor is asked about parts of the tensors by
several tasks; one that compares tensors sees all of a worker in one task, and one that compares workers all of them.
Rules that look at other tensors are asked by other tasks, so that as little as can be is read twice. The findings are
those of one process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeGuard

from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugRuntimeError, SMDebugValueError
from smd_agent.rules.built_in import BuiltInRule, Seen, Split
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.judging import Judging, Verdict, kept_in
from smd_agent.rules.rule import Rule
from smd_agent.rules.series_view import LOSS, SeriesView
from smd_agent.rules.step_view import RunView, StepView, Tensors

LOCAL = "local:"
_CONNECT_SECONDS = 30


@dataclass(frozen=True)
class Made:
    """A rule as it is sent to a process.

    Attributes:
        place: of the rule among those of the run.
        kind: its class.
        values: its parameters.
    """

    place: int
    kind: type[BuiltInRule]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """The part of a run that one task looks at.

    Attributes:
        run: folder of the run.
        worker: whose steps; None for those of all.
        last_step: counted over all modes; later ones are left out.
        tensors: which of them.
        rules: that are asked.
    """

    run: str
    worker: str | None
    last_step: int
    tensors: Tensors
    rules: tuple[Made, ...]


@dataclass
class Part:
    """The state of a rule after what one task has looked at.

    Attributes:
        made: the rule.
        worker: whose steps the task has looked at; None for those of all.
        seen: what the rule has seen, as `BuiltInRule.seen_so_far` has it.
        steps: at which it has looked, counted over all modes.
        judged, progress, fits, not_judged: as the rule says it.
        steps_of_series: see `BuiltInRule.take_series`.
    """

    made: Made
    worker: str | None
    seen: Seen
    steps: list[int]
    judged: bool
    progress: tuple[int, int]
    fits: bool
    not_judged: NotJudged
    steps_of_series: int = 0


@dataclass
class Answer:
    """The answer of a task: a part for each of its rules, and what could not be read."""

    parts: list[Part] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def judge_on_cluster(trial: Trial, rules: Sequence[Rule], cluster: Any) -> Verdict:
    """Return what rules say of a run, as `Judging` does.

    Args:
        trial: the run; its folder must have the same path where the cluster's processes run.
        rules: of ours, made without a trial. Those of a program's own are asked by this process.
        cluster: a ``distributed.Client``; the address of a scheduler; or text such as ``local:2``, for so many
            processes on this machine.

    Raises:
        SMDebugRuntimeError: the package ``distributed`` is not installed, there is no such cluster, or it has failed.
        SMDebugValueError: the text is none of these.
    """
    sent = {place: rule for place, rule in enumerate(rules) if _can_be_sent(rule)}
    own = Judging(trial, [rule for place, rule in enumerate(rules) if place not in sent])
    trial.maybe_refresh()
    with _client_of(cluster) as client:
        tasks = tasks_of(trial, sent, max(sum(client.nthreads().values()), 1))
        futures = client.map(answer_of, tasks, pure=False)
        own.take_new(incomplete=True)
        answers = _gathered(client, futures)
    verdict = merged(own.verdict(), trial, sent, answers)
    own.add_lines(verdict.findings)
    return verdict


def tasks_of(trial: Trial, rules: Mapping[int, BuiltInRule], slots: int) -> list[Task]:
    """Split the work on a run so that there are about as many tasks as can be done at once, which is ``slots``."""
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    if not steps:
        return []
    made = [Made(place, type(rule), _values_sent(rule)) for place, rule in rules.items()]
    reads = {place: _reads(trial, rule) for place, rule in rules.items()}
    workers = _workers(trial)
    shares = -(-slots // len(workers))
    fair = len(_read_by(made, reads)) / shares
    by_split = {
        split: [one for one in made if _split_of(rules[one.place], len(reads[one.place]) > fair) is split]
        for split in Split
    }
    groups = _grouped(by_split[Split.WORKER], reads, shares)
    run, last = trial.path, steps[-1]
    tasks = [Task(run, None, last, Tensors(), tuple(by_split[Split.RUN]))]
    for worker in workers:
        tasks += [Task(run, worker, last, Tensors(), tuple(group)) for group in groups]
        for number in range(shares):
            tasks.append(Task(run, worker, last, Tensors(number, shares), tuple(by_split[Split.TENSOR])))
    # The longest first, so that none is left over at the end.
    tasks.sort(key=lambda task: -len(_read_by(task.rules, reads)))
    return [task for task in tasks if task.rules]


def answer_of(task: Task) -> Answer:
    """Do a task, in a process of the cluster."""
    trial = create_trial(task.run, timeout=0)
    trial.maybe_refresh()
    trial.take_as_it_is()
    run = RunView(trial, tensors=task.tensors)
    rules = [made.kind(**made.values) for made in task.rules]
    table = trial.series_of_steps().get(task.worker or "")
    if table is not None and task.tensors.has(LOSS):
        for rule in rules:
            rule.take_series(SeriesView(task.worker or "", table, kept_in(trial)))
    steps: list[list[int]] = [[] for _ in rules]
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        if step > task.last_step:
            break
        for worker, file in sorted(trial.step_table.files(step).items()):
            if task.worker in (None, worker):
                view = StepView(run, file)
                for rule, looked_at in zip(rules, steps, strict=True):
                    if rule.offer(view):
                        looked_at.append(step)
    known = trial.collections()
    parts = []
    for made, rule, looked_at in zip(task.rules, rules, steps, strict=True):
        rule.end()
        part = Part(
            *(made, task.worker, rule.seen_so_far, looked_at),
            *(rule.has_judged, rule.progress, rule.fits(known), rule.not_judged()),
            steps_of_series=rule.steps_of_series,
        )
        parts.append(part)
    return Answer(parts, [*run.problems])


def merged(verdict: Verdict, trial: Trial, rules: Mapping[int, BuiltInRule], answers: Sequence[Answer]) -> Verdict:
    """Add what the cluster has found to what this process has; the order is that of one process."""
    workers = _workers(trial)
    verdict.steps = len(trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True))
    verdict.losses = max([verdict.losses, *(part.steps_of_series for answer in answers for part in answer.parts)])
    verdict.problems = [*dict.fromkeys([*verdict.problems, *(one for answer in answers for one in answer.problems)])]
    known = trial.collections()
    for place, rule in rules.items():
        own = [part for answer in answers for part in answer.parts if part.made.place == place]
        own.sort(key=lambda part: 0 if part.worker is None else workers.index(part.worker))
        if own and rule.split is Split.TENSOR:
            own = [_joined(rule, [part for part in own if part.worker == worker], known) for worker in workers]
        for part in own:
            verdict.findings += part.seen.findings
        most = max(own, key=lambda part: part.progress, default=None)
        if any(part.judged for part in own):
            verdict.judged.append(rule.rule_name)
        elif not (rule.fits(known) if most is None else most.fits):
            verdict.not_for_it.append(rule.rule_name)
        else:
            verdict.not_judged.append(rule.not_judged() if most is None else most.not_judged)
    verdict.findings.sort(key=lambda one: one.order)
    return verdict


def _joined(rule: BuiltInRule, parts: Sequence[Part], known: Mapping[str, object]) -> Part:
    """Make one part of those about parts of the tensors."""
    steps = sorted({step for part in parts for step in part.steps})
    met = {need for part in parts for need in part.seen.met}
    findings = sorted((one for part in parts for one in part.seen.findings), key=lambda one: one.order)
    whole = rule.fresh()
    whole.seen_so_far = Seen(findings, met, len(steps))
    judged = whole.has_judged or any(part.judged for part in parts)
    first = parts[0]
    return Part(
        *(first.made, first.worker, whole.seen_so_far, steps),
        *(judged, whole.progress, whole.fits(known), whole.not_judged()),
    )


def _can_be_sent(rule: Rule) -> TypeGuard[BuiltInRule]:
    """True if the cluster's processes have the rule's class."""
    return isinstance(rule, BuiltInRule) and type(rule).__module__.startswith("smd_agent.")


def _values_sent(rule: BuiltInRule) -> dict[str, Any]:
    """Return the rule's parameters, with folders in the place of other runs."""
    others = "other_trials"
    values = rule.told
    return {**values, others: [trial.path for trial in values[others]]} if values.get(others) else values


def _workers(trial: Trial) -> list[str]:
    """Return the workers that have written steps, in the order of their first ones."""
    found: dict[str, None] = {}
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        found.update(dict.fromkeys(sorted(trial.step_table.files(step))))
    return [*found]


def _split_of(rule: BuiltInRule, is_much: bool) -> Split:
    """Tell how a rule is split: what is little to read is not read by several."""
    return Split.WORKER if rule.split is Split.TENSOR and not is_much else rule.split


Reads = frozenset[tuple[str, str]]
"""What a rule reads at a step: tensors, each with a statistic, which is empty where it is the tensor itself."""


def _reads(trial: Trial, rule: BuiltInRule) -> Reads:
    """Return what a rule reads at the last step of each mode."""
    run, asked = RunView(trial), rule.fresh()
    found: set[tuple[str, str]] = set()
    for mode in trial.step_table.modes():
        last = trial.step_table.steps(mode, incomplete=True)[-1]
        for file in trial.step_table.files(last, mode).values():
            view = StepView(run, file)
            asked.offer(view)
            found |= view.has_read
    return frozenset(found)


def _read_by(rules: Sequence[Made], reads: Mapping[int, Reads]) -> Reads:
    return frozenset().union(*(reads[made.place] for made in rules))


def _grouped(rules: Sequence[Made], reads: Mapping[int, Reads], count: int) -> list[list[Made]]:
    """Put rules into groups that read about as much each, and little of it twice."""
    groups: list[list[Made]] = [[] for _ in range(count)]
    for made in sorted(rules, key=lambda made: -len(reads[made.place])):
        before = [len(_read_by(group, reads)) for group in groups]

        def cost(number: int, made: Made = made, before: list[int] = before) -> tuple[int, int]:
            after = len(_read_by([*groups[number], made], reads))
            return max(after, *before), after - before[number]

        groups[min(range(count), key=cost)].append(made)
    return groups


def _gathered(client: Any, futures: Sequence[Any]) -> list[Answer]:
    killed = import_module("distributed").KilledWorker
    try:
        answers: list[Answer] = client.gather(futures)
        return answers
    except killed as error:
        raise SMDebugRuntimeError(f"a process of the cluster was killed: {error}") from None


@contextmanager
def _client_of(cluster: Any) -> Iterator[Any]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise SMDebugRuntimeError("a cluster needs the package distributed: pip install 'smd-agent[dask]'") from None
    if isinstance(cluster, distributed.Client):
        yield cluster
        return
    address = str(cluster).strip()
    if address.startswith(LOCAL):
        count = address.removeprefix(LOCAL)
        if not count.isdecimal() or not int(count):
            raise SMDebugValueError(f"the cluster is {address!r}, allowed is {LOCAL}N with N of 1 or more")
        options = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
        # The processes would look a hundred times a second at what they are doing, and nobody at that.
        quiet = import_module("dask").config.set({"distributed.worker.profile.enabled": False})
        with quiet, distributed.LocalCluster(int(count), **options) as local, distributed.Client(local) as client:
            yield client
        return
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise SMDebugRuntimeError(f"there is no Dask scheduler at {address}: {error}") from None
    with client:
        yield client
