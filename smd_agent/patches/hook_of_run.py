"""What the patches of all frameworks do alike: read what to save, make the hook, say when there was nothing to save."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import TypeVar

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.config.settings import HookSettings
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL
from smd_agent.errors import ConfigError, SMDebugError
from smd_agent.framework.hook import FrameworkHook
from smd_agent.patches.importer import report_bad_config

H = TypeVar("H", bound=FrameworkHook)

_looked_for: list[str] = []


def wanted_settings(default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings | None:
    """What the environment asks to save; None, after one line, when that cannot be read."""
    try:
        return session.read_settings(default_save_interval=default_save_interval)
    except (FileNotFoundError, ConfigError) as error:
        report_bad_config(error)
        return None


def make_hook(hook_class: type[H], settings: HookSettings, follow_calls: bool = False) -> H | None:
    """The hook of a program that has not made one; None, after one line, when nothing can be saved.

    Args:
        hook_class: the framework's.
        settings: of the run.
        follow_calls: whether the mode is what the program does, as long as it sets none.
    """
    existing = session.current()
    if existing is not None:
        # Two kinds of hooks would write over each other's steps.
        name = hook_class.__module__.split(".")[1]
        line = f"{existing.out_dir} holds a run of another framework: no training with {name} is saved"
        guard.say_once(("another framework", hook_class), line)
        return None
    try:
        hook = hook_class.from_settings(settings)
    except (SMDebugError, OSError) as error:
        guard.say(f"{error} Nothing is saved.")
        return None
    if follow_calls:
        hook.follow_calls()
    return hook


def tell_if_nothing(
    what: str, settings: HookSettings, expected: Callable[[], bool], told: Callable[[], bool] = lambda: False
) -> None:
    """Say at exit that nothing was captured, in one line for all frameworks that the program imported.

    Args:
        what: how a training with the framework shows.
        settings: of the run.
        expected: asked at exit: whether the program is known to have trained. The launcher's own program is always
            expected to.
        told: asked at exit: whether the reason has been said.
    """
    pid = os.getpid()
    _looked_for.append(what)

    def tell() -> None:
        if os.getpid() != pid or session.current() is not None or told():
            return
        if os.path.isdir(os.path.join(settings.out_dir, "index")):
            # A launcher such as torchrun imports the framework too; its workers did the training.
            return
        if expected() or env.launch_pid() == pid:
            seen = " or ".join(_looked_for)
            guard.say_once("nothing was captured", f"nothing was captured: no training was seen ({seen})")

    atexit.register(tell)
