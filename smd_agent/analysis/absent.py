"""Collections of which nothing came up in a run, though it saved them or could not have them, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smd_agent.analysis.trial import Trial
    from smd_agent.core.collection import Collection


def never_came_up(trial: Trial) -> dict[str, str]:
    """Return the names of collections that have no tensor, and would have none if they were asked for once more.

    Each has the reason that the run tells; an empty one where it tells none.
    """
    manager = trial.collection_manager
    reasons, asked = manager.cannot_save, {*(manager.asked_for or ()), *manager.always_saved}
    last = _last_steps(trial)
    tried = [
        (name, one)
        for name, one in trial.collections().items()
        if name in reasons or ((name in asked or CollectionKeys.ALL in asked) and _was_due(one, last))
    ]
    names = trial.tensor_names() if tried else []
    return {name: reasons.get(name, "") for name, one in tried if not any(map(one.matches, names))}


def _last_steps(trial: Trial) -> dict[ModeKeys, int]:
    """The last saved step of each mode, as it counts them."""
    found: dict[ModeKeys, int] = {}
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        mode, number = trial.mode_modestep(step)
        if mode is not None and number is not None:
            found[mode] = number
    return found


def _was_due(collection: Collection, last: Mapping[ModeKeys, int]) -> bool:
    """Whether a saved step could have had it."""
    if collection.save_config is None:
        return True
    first = {mode: collection.save_config.get_save_config(mode).next_step(0) for mode in last}
    return any(due is not None and due <= last[mode] for mode, due in first.items())
