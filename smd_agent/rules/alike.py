"""Findings put together that differ only in their tensors and steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smd_agent.rules.finding import Finding


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings in groups of one rule, severity, cause and advice, in the order of their first ones."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.rule, one.severity, one.cause, one.advice), []).append(one)
    return [*groups.values()]
