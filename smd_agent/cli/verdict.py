"""The verdict of rules on a run, and the list of rules, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from smd_agent.analysis.trial import Trial
from smd_agent.cli.output import WIDTH
from smd_agent.printable import count_of, number_text, shortened_within, some_of
from smd_agent.rules.finding import Finding, NotJudged, Severity, alike, steps_in_words
from smd_agent.rules.judging import Verdict
from smd_agent.rules.not_judged import grouped

_NAMES_SHOWN = 3
_LONGEST_NAME = 60
_LABEL = 10


def verdict_lines(trial: Trial, verdict: Verdict, failures: Sequence[str] = ()) -> Iterator[str]:
    """Yield what was found, the worst first, then what could not be judged; ``failures`` are the agent's, in lines."""
    yield f"Run      {trial.path}"
    yield from failures
    yield f"Judged   {_summary(verdict, 'no findings in what was saved' if failures else 'nothing found')}"
    several = len(trial.workers()) > 1
    for group in alike(verdict.findings):
        yield ""
        yield from group_lines(group, several)
    for heading, own in _left_out(verdict.not_judged).items():
        yield from _not_judged_lines(heading, own)
    if verdict.not_for_it:
        yield ""
        yield f"Not for this run: {', '.join(verdict.not_for_it)}"


def _left_out(not_judged: Sequence[NotJudged]) -> dict[str, list[NotJudged]]:
    """Return the rules that could not judge by heading, those first that another run could be judged by."""
    found: dict[str, list[NotJudged]] = {"Not judged": [], "Too few steps": [], "Nothing to judge": []}
    for one in not_judged:
        heading = "Too few steps" if one.too_few_steps else "Nothing to judge" if one.never_came_up else "Not judged"
        found[heading].append(one)
    return {heading: own for heading, own in found.items() if own}


def _not_judged_lines(heading: str, rules: Sequence[NotJudged]) -> Iterator[str]:
    yield ""
    yield heading
    for (reason, option), names in grouped(rules).items():
        yield from wrap(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")
        yield f"    {reason}"
        if option:
            yield f"    {option}"


def list_lines(meanings: Mapping[str, tuple[str, bool]]) -> Iterator[str]:
    """Yield what each rule looks for, and whether it is applied only where it is asked for by its name."""
    width = max(map(len, meanings))
    for name, (meaning, only_by_name) in meanings.items():
        by_name = f" (only by --rules {name})" if only_by_name else ""
        yield f"{name:<{width}}  {meaning}{by_name}".rstrip()


def _summary(verdict: Verdict, nothing: str) -> str:
    counts = dict.fromkeys(Severity, 0)
    for group in alike(verdict.findings):
        counts[group[0].severity] += 1
    found = [count_of(number, severity.value) for severity, number in counts.items() if number]
    what = ", ".join(found) or nothing
    return f"{count_of(len(verdict.judged), 'rule')} over {verdict.looked_at}: {what}"


def group_lines(group: Sequence[Finding], several_workers: bool) -> Iterator[str]:
    """Yield what was found on some tensors that are alike, where, by which numbers, why, and what to try."""
    first = group[0]
    names = list(dict.fromkeys(one.tensor for one in group if one.tensor is not None))
    about = f": {_listed(names)}" if names else ""
    yield f"{first.severity.value}  {first.rule}{about}"
    yield _labelled("where", _where(group, several_workers))
    if lines := [*dict.fromkeys(one.line for one in group if one.line)]:
        yield _labelled("line", some_of(lines, 1))
    if first.evidence:
        yield _labelled(
            "evidence", ", ".join(f"{_words(name)} {_number(value)}" for name, value in first.evidence.items())
        )
    if first.cause:
        yield _labelled("cause", first.cause)
    if first.advice:
        yield _labelled("try", first.advice)


def _listed(names: Sequence[str]) -> str:
    return some_of([shortened_within(name, _LONGEST_NAME) for name in names], _NAMES_SHOWN)


def _where(group: Sequence[Finding], several_workers: bool) -> str:
    modes = dict.fromkeys(one.mode for one in group)
    steps = "; ".join(_steps([one for one in group if one.mode is mode]) for mode in modes)
    workers = sorted({one.worker for one in group if one.worker})
    return f"{steps}; {_listed(workers)}" if several_workers and workers else steps


def _steps(group: Sequence[Finding]) -> str:
    first, last = min(one.first_step for one in group), max(one.last_step for one in group)
    mode, saved = group[0].mode.name, steps_in_words(group)
    return f"{mode} step {first}" if first == last else f"{mode} steps {first} to {last} ({saved})"


def _labelled(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{text}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _number(value: object) -> str:
    return number_text(value) if isinstance(value, float) else str(value)
