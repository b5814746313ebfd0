"""Rules as the configuration of a run has them: with the documented defaults, and what they are told there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smd_agent.analysis.trial import create_trial
from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.errors import SMDebugError
from smd_agent.printable import shortened
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.parameters import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smd_agent.analysis.trial import Trial
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
