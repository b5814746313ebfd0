"""The line at exit of a program of which nothing was captured, and why."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.config.settings import HookSettings
from smd_agent.stalled_disk import in_time


class _Framework(NamedTuple):
    """A framework that the program has imported.

    signs: how a training with it shows.
    reason: what it knows of one that was not seen.
    explained: whether it has said why nothing of a training is saved.
    """

    signs: str
    reason: Callable[[], str | None]
    explained: Callable[[], bool]


_imported: list[_Framework] = []


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
    _imported.append(_Framework(training_signs, reason, already_explained))

    @guard.fence("looking for a run at the end")
    def warn() -> None:
        if os.getpid() != pid or session.is_off(framework) or session.has_had_hook():
            return
        if in_time(partial(os.path.isdir, os.path.join(settings.out_dir, "index"))):
            # A launcher such as torchrun imports the framework too; its workers did the training.
            return
        known = "; ".join(found for one in _imported if (found := one.reason()))
        if not known and any(one.explained() for one in _imported):
            return
        if known or was_training() or env.launch_pid() == pid:
            why = known or f"no training was seen ({' or '.join(one.signs for one in _imported)})"
            guard.say_once("nothing was captured", f"nothing was captured: {why}")

    atexit.register(warn)
