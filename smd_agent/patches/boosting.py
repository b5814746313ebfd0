"""Patches of libraries of boosted trees: their functions that train get one more callback."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

from smd_agent import guard
from smd_agent.framework.boosting.hook import DEFAULT_SAVE_INTERVAL
from smd_agent.framework.boosting.training_functions import Describe, HookClass, Trainings, watch_calls
from smd_agent.patches.hook_from_settings import make_hook, wanted_settings
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured


def capture(library: ModuleType, targets: Mapping[str, Describe], *, hook: str, oldest: str, needs: str) -> None:
    """Have the trainings of the program saved.

    Args:
        library: as it was imported.
        targets: by dotted path of a function that trains, what a call of it tells.
        hook: the module that has its ``Hook``.
        oldest: release that is supported.
        needs: attribute of the library that releases before it lack.
    """
    settings = wanted_settings(DEFAULT_SAVE_INTERVAL)
    if settings is None:
        return
    if not hasattr(library, needs):
        release = f"{library.__name__} {library.__version__}"
        guard.say(f"{release} is not supported (oldest is {oldest}): nothing will be captured")
        return

    def load() -> HookClass:
        found: HookClass = importlib.import_module(hook).Hook
        return found

    trainings = Trainings(load, lambda kind: make_hook(kind, settings), settings.include_workers == "all")
    watch_calls(library, targets, trainings)
    names = (f"{library.__name__}.{path.rpartition('.')[2]}" for path in targets)
    warn_at_exit_if_nothing_captured(library.__name__, f"a call of {' or '.join(names)}", settings, lambda: False)
