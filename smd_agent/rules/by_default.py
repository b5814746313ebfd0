"""A run judged by the rules that are applied without being named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.registry import built_in_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from smd_agent.analysis.trial import Trial
    from smd_agent.rules.built_in import BuiltInRule


def rules_by_default() -> dict[str, type[BuiltInRule]]:
    """Return the rules that need not be named, by name."""
    return {name: rule for name, rule in built_in_rules().items() if not rule.only_by_name}


def judge(trial: Trial, progress: Callable[[int, int], None] | None = None) -> Verdict:
    """Return what these rules say of a run, as far as it goes by now.

    Args:
        trial: the run.
        progress: is told how many steps are done, of how many.
    """
    judging = Judging(trial, [rule() for rule in rules_by_default().values()])
    judging.take_new(progress, incomplete=True)
    return judging.verdict()
