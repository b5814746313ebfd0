"""The line at exit that says that nothing was captured, and why."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import partial

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.config.settings import HookSettings
from smd_agent.stalled_disk import in_time

# How trainings with the frameworks show that the program has imported, and what these know of one that was not seen.
_signs: list[str] = []
_reasons: list[Callable[[], str | None]] = []
# Whether they have said why nothing of a training is saved.
_explained: list[Callable[[], bool]] = []


def warn_at_exit_if_nothing_captured(
    framework: str,
    training_signs: str,
    settings: HookSettings,
    was_training: Callable[[], bool],
    already_explained: Callable[[], bool] = lambda: False,
    reason: Callable[[], str | None] = lambda: None,
) -> None:
    """Say at exit that nothing was captured, in one line for all frameworks that the program imported.

    Args:
        framework: that is captured; nothing is said of one of which the capture was switched off.
        training_signs: how a training with the framework shows.
        settings: of the run.
        was_training: asked at exit: whether the program is known to have trained. The launcher's own program is always
            expected to.
        already_explained: asked at exit: whether the reason has been said, for whatever frameworks are imported beside.
        reason: asked at exit: why a training was not captured; None if none is known to have been missed.
    """
    pid = os.getpid()
    _signs.append(training_signs)
    _reasons.append(reason)
    _explained.append(already_explained)

    @guard.fence("looking for a run at the end")
    def warn() -> None:
        if os.getpid() != pid or session.is_off(framework) or session.has_had_hook():
            return
        if in_time(partial(os.path.isdir, os.path.join(settings.out_dir, "index"))):
            # A launcher such as torchrun imports the framework too; its workers did the training.
            return
        known = "; ".join(found for ask in _reasons if (found := ask()))
        if not known and any(told() for told in _explained):
            return
        if known or was_training() or env.launch_pid() == pid:
            why = known or f"no training was seen ({' or '.join(_signs)})"
            guard.say_once("nothing was captured", f"nothing was captured: {why}")

    atexit.register(warn)
