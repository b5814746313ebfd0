"""Owner of the one current hook of the process, which ends it at exit and after a fork."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from smd_agent import guard
from smd_agent.config import env
from smd_agent.config.load import Source, find_source, load_settings
from smd_agent.config.settings import HookSettings
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL

if TYPE_CHECKING:
    from smd_agent.core.hook import BaseHook

P = ParamSpec("P")
R = TypeVar("R")

_current: BaseHook | None = None
_prepared = False


def read_settings(path: str | None = None, default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings:
    """The settings in this file; with None, in the place where the environment says what to capture.

    ``default_save_interval``, in steps, is the framework's.

    Raises:
        FileNotFoundError: there is no such file, or no such place.
        ConfigError: its content is wrong.
    """
    source = Source(path) if path is not None else find_source()
    if source is None or (source.text is None and not os.path.exists(source.name)):
        name = env.DEFAULT_CONFIG_PATH if source is None else source.name
        raise FileNotFoundError(f"there is no hook configuration at {name}")
    return load_settings(source, default_save_interval)


def current() -> BaseHook | None:
    """The hook of this process, if there is one."""
    return _current


def make_current(hook: BaseHook) -> None:
    """Make this the hook of the process; it is ended at exit."""
    global _current, _prepared
    if _current is not None and _current is not hook:
        _finish(_current)
        _current.disable()
    _current = hook
    if not _prepared:
        _prepared = True
        guard.strict = env.strict()
        atexit.register(_at_exit)
        _end_with_child_process()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)


def forget() -> None:
    """Have no hook any more; the one there was is not closed."""
    global _current
    _current = None


def switch_off() -> None:
    """Capture nothing more in this process; what is saved already stays."""
    if _current is not None:
        _current.disable()


def fence(what: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """``guard.fence`` that switches the current hook off when something of ours fails."""
    return guard.fence(what, on_failure=switch_off)


def finish_run(hook: BaseHook) -> None:
    """End the run: everything on disk, end mark set (inside a SageMaker job its agent does that)."""
    hook.finish(end_marker=not env.in_training_job())


def _end_with_child_process() -> None:
    # A child that multiprocessing forked leaves by os._exit, past all atexit functions but not past its own finalizers.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _at_exit, exitpriority=0)


def _finish(hook: BaseHook) -> None:
    failure = guard.attempt(partial(finish_run, hook))
    if failure is not None:
        guard.say(f"ending the run in {hook.out_dir} failed ({guard.describe(failure)})")


def _at_exit() -> None:
    if _current is not None:
        _finish(_current)


def _after_fork() -> None:
    # The thread, the claim and the open files are the parent's. A child that trains on its own before the parent has
    # saved anything keeps its hook.
    if _current is not None and _current.writing:
        _current.disable()
