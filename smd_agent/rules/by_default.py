"""A run judged by the rules that are applied without being named: those of its configuration, if it has any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.rules.configured import OTHER_RUNS, configured_rules
from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.lacks import with_reasons
from smd_agent.rules.registry import applied_unasked, built_in_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from smd_agent.analysis.trial import Trial
    from smd_agent.rules.built_in import BuiltInRule


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
