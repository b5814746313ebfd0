"""Findings of rules, as a part of the page: the verdict in one line, then each finding, linked to its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smd_agent.analysis.trial import Trial
from smd_agent.printable import some_of
from smd_agent.report.html_elements import Element, count_of, element, number_text
from smd_agent.rules.finding import Finding, Severity, alike, steps_in_words
from smd_agent.rules.judging import Verdict
from smd_agent.rules.registry import built_in_rules

_HEADLINES = 3
_NAMES_SHOWN = 6
_MOST_NAMES = 200


def verdict_element(verdict: Verdict) -> Element:
    """Return the verdict: how many problems, warnings and notes, and what the worst one is."""
    groups = alike(verdict.findings)
    counts = {severity: sum(group[0].severity is severity for group in groups) for severity in Severity}
    worst = next((severity for severity, number in counts.items() if number), None)
    said = ", ".join(count_of(number, severity.value) for severity, number in counts.items() if number)
    if not verdict.judged and worst is None:
        kind, said = "note", "Not judged"
    else:
        kind, said = ("good", "Nothing found") if worst is None else (worst.value, said)
    parts = [element("strong", said[:1].upper() + said[1:])]
    judged = f"{count_of(len(verdict.judged), 'rule')} looked at {count_of(verdict.steps, 'step')}"
    left = f"; {len(verdict.not_judged)} could not judge" if verdict.not_judged else ""
    parts.append(element("small", judged + left))
    if groups:
        several = len({one.worker for one in verdict.findings if one.worker}) > 1
        lines = (_headline(group, several, is_first=group is groups[0]) for group in groups[:_HEADLINES])
        parts.append(element("ul", *lines))
        below = len(groups) - _HEADLINES
        if below > 0:
            parts.append(element("small", f"and {below} more below"))
    return element("div", *parts, class_=f"verdict {kind}", role="status")


def findings_element(trial: Trial, verdict: Verdict, is_linked: bool = True) -> Element:
    """Return the findings, the worst first.

    Args:
        trial: the run.
        verdict: what rules say of it.
        is_linked: whether the page shows the places.
    """
    several = len(trial.workers()) > 1
    groups = alike(verdict.findings)
    if not groups:
        return element("p", "No rule has found anything.", class_="quiet")
    return element("ol", *(_item(trial, group, several, is_linked) for group in groups), class_="findings")


def marks(trial: Trial, verdict: Verdict) -> list[dict[str, object]]:
    """Return for JSON where something was found: tensor, severity, rule, first and last step over all modes."""
    return [
        {
            "tensor": one.tensor,
            "severity": one.severity.value,
            "rule": one.rule,
            "first": one.global_step,
            "last": _last_step(trial, one),
        }
        for one in verdict.findings
    ]


def _headline(group: Sequence[Finding], several: bool, is_first: bool) -> Element:
    """Return what was found in a line; of the first, which is where to begin, the cause and what to try, too."""
    first = group[0]
    names = [*dict.fromkeys(one.tensor for one in group if one.tensor is not None)]
    said = first.in_short(some_of(names, 1))
    whose = f" on {first.worker}" if several and first.worker and len({one.worker for one in group}) == 1 else ""
    since = f"{first.rule}, {'from ' if first.steps > 1 else ''}{_step(first)}{' on' if first.steps > 1 else ''}"
    parts = [element("b", f"{said[:1].upper()}{said[1:]}{whose}"), element("small", f" {since}")]
    if is_first and first.cause:
        parts.append(element("p", f"{first.cause}."))
    if is_first and first.advice:
        parts.append(element("p", element("i", "Try: "), f"{first.advice}.", class_="try"))
    return element("li", *parts)


def _item(trial: Trial, group: Sequence[Finding], several: bool, is_linked: bool) -> Element:
    first = group[0]
    severity = first.severity.value
    head = [element("b", severity, class_=f"badge {severity}"), element("h3", first.rule)]
    parts = [element("header", *head, element("span", _where(group, several), class_="where"))]
    if lines := [*dict.fromkeys(one.line for one in group if one.line)]:
        parts.append(element("p", element("code", lines[0]), class_="quiet"))
    meaning = getattr(built_in_rules().get(first.rule), "meaning", "")
    if meaning:
        parts.append(element("p", f"{meaning[:1].upper()}{meaning[1:]}.", class_="quiet"))
    if first.cause:
        parts.append(element("p", f"{first.cause}."))
    if first.advice:
        parts.append(element("p", element("i", "Try: "), f"{first.advice}.", class_="try"))
    tensors = [one for one in group if one.tensor is not None]
    if tensors or is_linked:
        parts.append(_places(trial, tensors or [*group[:1]], is_linked))
    if first.evidence:
        parts.append(_evidence(first.evidence))
    return element("li", *parts, class_=severity)


def _places(trial: Trial, group: Sequence[Finding], is_linked: bool) -> Element:
    links = [_link(trial, one, is_linked) for one in {one.tensor: one for one in reversed(group)}.values()][::-1]
    shown, rest, beyond = links[:_NAMES_SHOWN], links[_NAMES_SHOWN:_MOST_NAMES], len(links[_MOST_NAMES:])
    parts: list[Element] = [*shown]
    if rest:
        more = element("p", f"and {beyond} more", class_="quiet") if beyond else element("span")
        parts.append(element("details", element("summary", f"{len(rest) + beyond} more"), *rest, more))
    return element("div", *parts, class_="places")


def _link(trial: Trial, one: Finding, is_linked: bool) -> Element:
    text = one.tensor if one.tensor is not None else "the training as a whole: losses"
    if not is_linked:
        return element("span", text, class_="name")
    return element(
        "a", text, href="#tensors" if one.tensor else "#losses", class_="name place", data_tensor=one.tensor,
        data_first=one.global_step, data_last=_last_step(trial, one),
    )  # fmt: skip


def _last_step(trial: Trial, one: Finding) -> int:
    found = trial.step_table.global_step(one.mode, one.last_step)
    return one.global_step if found is None else max(found, one.global_step)


def _evidence(evidence: Mapping[str, object]) -> Element:
    words = [
        element("span", f"{name.replace('_', ' ')} ", element("b", number_text(value)))
        for name, value in evidence.items()
    ]
    return element("p", *words, class_="evidence")


def _where(group: Sequence[Finding], several: bool) -> str:
    modes = dict.fromkeys(one.mode for one in group)
    texts = []
    for mode in modes:
        own = [one for one in group if one.mode is mode]
        first, last = min(one.first_step for one in own), max(one.last_step for one in own)
        saved = steps_in_words(own)
        texts.append(f"{mode.name} step {first}" if first == last else f"{mode.name} steps {first} to {last}, {saved}")
    workers = sorted({one.worker for one in group if one.worker})
    if several and workers:
        texts.append(some_of(workers, 3))
    return "; ".join(texts)


def _step(one: Finding) -> str:
    return f"{one.mode.name} step {one.first_step}"
