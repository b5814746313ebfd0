"""Trained parameters of a run, and those that are not trained: by what was noted in the collection ``parameters``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import TensorSource
    from smd_agent.core.collection import Collection

TRAINED, FROZEN, FORGOTTEN, NO_GRADIENT = "trained", "frozen", "no optimizer", "no gradient"
"""Trained; not to be trained; to be trained, and in no optimizer; in one, and without a gradient in all that was noted.
"""

# It is noted where it has changed: in every step where models take turns.
_MOST_NOTES = 50
# In the place of an optimizer: one that has not updated in this step.
_NOT_NOW = "another"


def trained_states(source: TensorSource, noted: Collection, names: Iterable[str]) -> dict[str, str]:
    """Return of each parameter whether it is trained, by name; of which that cannot be known is left out.

    Args:
        source: the trial.
        noted: the collection ``parameters``.
        names: of the tensors of the run.
    """
    latest: dict[str, dict[str, object]] = {}
    had_gradient: set[str] = set()
    for name in names:
        for facts in _notes(source, name) if noted.matches(name) else ():
            for parameter, fact in facts.items():
                latest[parameter] = fact
                if fact.get("gradient"):
                    had_gradient.add(parameter)
    states = {parameter: _state(fact, parameter in had_gradient) for parameter, fact in latest.items()}
    return {parameter: state for parameter, state in states.items() if state is not None}


def untrained(states: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of the parameters that are not trained, by their state, the worst first.

    Args:
        states: of each parameter, by name.
    """
    found = {
        state: [name for name, own in states.items() if own == state] for state in (FORGOTTEN, NO_GRADIENT, FROZEN)
    }
    return {state: names for state, names in found.items() if names}


def _state(fact: dict[str, object], had_gradient: bool) -> str | None:
    if not fact.get("requires_grad"):
        return FROZEN
    if fact.get("optimizer") is None:
        return FORGOTTEN
    if had_gradient:
        return TRAINED
    # What another optimizer has may get its gradients in steps that were not saved.
    return None if fact.get("optimizer") == _NOT_NOW else NO_GRADIENT


def _notes(source: TensorSource, name: str) -> Iterator[dict[str, dict[str, object]]]:
    """The notes under a name, the latest last; those that cannot be read are left out."""
    steps = source.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    files = [file for step in steps for _, file in sorted(source.step_table.files(step).items(), reverse=True)]
    for file in [file for file in files if name in source.contents(file).names][-_MOST_NOTES:]:
        try:
            (text,) = source.read(file, name).value.reshape(-1).tolist()
            facts: Any = json.loads(text)
        except (SMDebugError, ValueError, TypeError, RecursionError):
            continue
        if isinstance(facts, dict):
            yield {str(parameter): fact for parameter, fact in facts.items() if isinstance(fact, dict)}
