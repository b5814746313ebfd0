"""Rules that a run is judged by without any being named: those of its configuration, if it has any.

Rules of a configuration have the documented defaults, and what they are told there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.errors import SMDebugError
from smd_agent.printable import shortened
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.lacks import with_reasons
from smd_agent.rules.parameters import names
from smd_agent.rules.registry import applied_unasked, built_in_rules
from smd_agent.rules.rule import Rule

_LONGEST = 60
OTHER_RUNS = frozenset({"other_trials", "other_trial"})
"""Parameters that name other runs."""


def configured_rules(
    entries: Iterable[tuple[str, Mapping[str, Any]]],
    known: Mapping[str, type[Rule]],
    other_trials: Sequence[Trial] | None = None,
) -> tuple[list[BuiltInRule], list[NotJudged]]:
    """Make the rules of a configuration; of those that cannot be made, say why.

    Args:
        entries: name and parameters of each.
        known: the rules that there are, by name.
        other_trials: for those that compare runs.
    """
    made: list[BuiltInRule] = []
    left: list[NotJudged] = []
    for name, parameters in entries:
        rule = known.get(name)
        if rule is None or not issubclass(rule, BuiltInRule):
            left.append(NotJudged(shortened(name, _LONGEST), "there is no rule of this name", "see check --list"))
            continue
        try:
            made.append(rule.as_documented(_given(parameters, other_trials), other_trials))
        except (SMDebugError, TypeError, UnfitPattern) as error:
            left.append(NotJudged(name, shortened(str(error)), "correct its RuleParameters"))
    return made, left


def _given(parameters: Mapping[str, Any], other_trials: Sequence[Trial] | None) -> dict[str, Any]:
    given = dict(parameters)
    for key in sorted(OTHER_RUNS):
        folders = given.pop(key, None)
        # Those that the command names count; of others nothing is waited for.
        if folders is not None and not other_trials:
            given[key] = [create_trial(folder, timeout=0) for folder in names(folders)]
    for key, value in given.items():
        if "regex" in key:
            for pattern in names(value):
                name_pattern(pattern)
    return given


def rules_of_run(trial: Trial) -> list[BuiltInRule]:
    """Return the rules of a run's configuration, but for what reads other runs; else those that need not be named."""
    known, configured = built_in_rules(), trial.collection_manager.rules
    if not configured:
        return [rule() for rule in applied_unasked(known).values()]
    own = [(name, parameters) for name, parameters in configured if not OTHER_RUNS & parameters.keys()]
    return configured_rules(own, known)[0]


def judge(trial: Trial, progress: Callable[[int, int], None] | None = None) -> Verdict:
    """Return what these rules say of a run, as far as it goes by now.

    Args:
        trial: the run.
        progress: is told how many steps are done, of how many.
    """
    judging = Judging(trial, rules_of_run(trial))
    judging.take_new(progress, incomplete=True)
    verdict = judging.verdict()
    verdict.not_judged = with_reasons(verdict.not_judged, trial)
    return verdict
