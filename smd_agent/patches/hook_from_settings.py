"""The part of every patch that is alike: the settings of the run, and the hook that is made of them."""

from __future__ import annotations

from typing import TypeVar

from smd_agent import guard, session
from smd_agent.config.load import read_settings
from smd_agent.config.settings import HookSettings
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL
from smd_agent.errors import ConfigError, SMDebugError
from smd_agent.framework.hook import FrameworkHook
from smd_agent.patches.importer import report_bad_config
from smd_agent.patches.verdict_at_exit import judge_runs
from smd_agent.storage.folder_choice import obstacle

H = TypeVar("H", bound=FrameworkHook)


def wanted_settings(default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings | None:
    """The settings that the environment asks for, read once in a process; None, after a line, if they cannot be read.

    ``default_save_interval``, in steps, is the framework's.
    """
    settings = session.wanted(default_save_interval)
    if settings is None:
        try:
            settings = read_settings(default_save_interval=default_save_interval)
            why = "" if settings.dry_run else obstacle(settings.out_dir)
            if why:
                # Before the program has trained up to its first step that is saved.
                report_bad_config(ConfigError(f"no run can be written into {settings.out_dir}: {why}"))
                return None
        except (FileNotFoundError, ConfigError) as error:
            report_bad_config(error)
            return None
        session.want(settings, default_save_interval)
        session.when_ended(judge_runs)
    return settings


def make_hook(hook_class: type[H], settings: HookSettings, follow_calls: bool = False) -> H | None:
    """The hook of a program that has not made one; None, after one line, when nothing can be saved.

    After a failure, of which the line says that the capture is off, there is none: its steps would have other numbers.

    Args:
        hook_class: the framework's.
        settings: of the run.
        follow_calls: whether the mode is what the program does, as long as it sets none.
    """
    name = session.framework_of(hook_class)
    if session.is_off(name):
        return None
    existing = session.current()
    if existing is not None and session.framework_of(type(existing)) == name:
        # As of Keras on PyTorch: two kinds of hooks would save the same tensors.
        line = f"{existing.out_dir} holds a run of another framework: no training with {name} is saved"
        guard.say_once(("another framework", hook_class), line)
        return None
    try:
        hook = hook_class.from_settings(settings)
    except (SMDebugError, OSError) as error:
        guard.say(f"{error} Nothing is saved.")
        return None
    if follow_calls and guard.attempt(hook.follow_calls) is not None:
        # The hook is made: this will not be asked again.
        hook.follow_calls()
    return hook
