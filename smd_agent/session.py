"""Owner of the hooks of the process, one for each framework, which ends them at exit and frees them after a fork."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from smd_agent import guard
from smd_agent.config import env
from smd_agent.config.settings import HookSettings
from smd_agent.core.failure_domains import STEPS, failures
from smd_agent.core.overhead import overhead

if TYPE_CHECKING:
    from smd_agent.core.hook import BaseHook

H = TypeVar("H", bound="BaseHook")


class _Session:
    """The runs of this process.

    hooks: the newest comes last.
    off: the frameworks of which a failure of ours has switched the capture off; "" stands for all.
    prepared: whether the runs, and those of forks, are ended with the process.
    wanted: what the environment asks to save of a program that nobody has edited, by the default save interval.
    when_ended: called with the hooks when the runs have ended.
    """

    def __init__(self) -> None:
        self.hooks: list[BaseHook] = []
        self.off: set[str] = set()
        self.prepared = False
        self.wanted: dict[int, HookSettings] = {}
        self.when_ended: list[Callable[[list[BaseHook]], object]] = []


_session = _Session()


def current() -> BaseHook | None:
    """The newest hook of this process, if there is one."""
    return _session.hooks[-1] if _session.hooks else None


def has_had_hook() -> bool:
    """True if this process has a hook, or has had one."""
    return _session.prepared


def current_of(kind: type[H]) -> H | None:
    """The newest hook of this process that is of this class, if there is one."""
    return next((hook for hook in reversed(_session.hooks) if isinstance(hook, kind)), None)


def make_current(hook: BaseHook) -> list[BaseHook]:
    """Make this the hook of the process for its framework; one that it replaces is ended now, this one at exit.

    Where a failure has switched the capture off, it saves nothing: its steps would have other numbers. Nor does it
    where ``USE_SMDEBUG`` is off.

    Returns:
        Those that it replaces.
    """
    _prepare()
    name = framework_of(type(hook))
    replaced = [other for other in _session.hooks if other is hook or framework_of(type(other)) == name]
    for other in replaced:
        _session.hooks.remove(other)
        if other is not hook:
            _finish(other)
            if other.ended_worker:
                guard.say(f"another hook was made: the run in {other.out_dir} ends with step {other.step}")
            other.disable()
            guard.attempt(other.clear_away)
    _session.hooks.append(hook)
    if is_off(name) or not env.use_smdebug():
        hook.disable()
    return [other for other in replaced if other is not hook]


def _prepare() -> None:
    """Have the runs of this process, and those of its forks, ended with it."""
    if _session.prepared:
        return
    guard.strict = env.strict()
    _end_with_child_process()
    # Last what cannot fail: it must not be there twice.
    _session.prepared = True
    atexit.register(_at_exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def want(settings: HookSettings, default_save_interval: int) -> None:
    """Take note of what the environment asks to save of a program that nobody has edited."""
    _session.wanted[default_save_interval] = settings


def wanted(default_save_interval: int) -> HookSettings | None:
    """The settings that were noted for this interval."""
    return _session.wanted.get(default_save_interval)


def tell_of_own_hook(hook: BaseHook) -> None:
    """Say where a program's own hook saves instead of where the environment says, or that it is off."""
    name = framework_of(type(hook))
    if not env.use_smdebug():
        guard.say_once("own hook, off", f"{env.USE} is off: the program's own hook saves nothing")
    elif _session.wanted and not is_off(name):
        line = f"the program has a hook of its own for {name}: it says what is saved, to {hook.out_dir}"
        asked = [*_session.wanted.values()][-1].out_dir
        elsewhere = f" and not to {asked}" if asked != hook.out_dir else ""
        guard.say_once(("own hook", name, hook.out_dir), line + elsewhere)


def framework_of(kind: type[BaseHook]) -> str:
    """The framework that hooks of this class, or the class of ours that it is made from, belong to."""
    return kind.framework or next(
        (base.__module__.split(".")[1] for base in kind.__mro__ if base.__module__.startswith("smd_agent.")), ""
    )


def forget(framework: str | None = None) -> None:
    """Have no hook any more, or none of this framework; those there were are not closed."""
    if framework is None:
        _session.off.clear()
        failures.begin_anew()
    others = [hook for hook in _session.hooks if framework_of(type(hook)) != framework]
    _session.hooks = [] if framework is None else others


def switch_off(framework: str = "") -> None:
    """Capture nothing more in this process, or nothing more of this framework; what is saved already stays."""
    _session.off.add(framework)
    for hook in _session.hooks:
        if framework in ("", framework_of(type(hook))):
            hook.disable()


def is_off(framework: str = "") -> bool:
    """True if a failure of ours has switched the capture of everything, or of this framework, off.

    Then no hook is made for the program any more.
    """
    return not _session.off.isdisjoint(("", framework))


def _where() -> tuple[int, str]:
    hook = current()
    return (-1, "") if hook is None else (hook.step, hook.mode.name)


def _note_failures() -> None:
    for hook in _session.hooks:
        hook.note_failures()


failures.where = _where
failures.changed = _note_failures
STEPS.end = switch_off


def finish_run(hook: BaseHook) -> None:
    """End the run: everything on disk, end mark set (inside a SageMaker job its agent does that)."""
    hook.finish(end_marker=not env.in_training_job())


def when_ended(action: Callable[[list[BaseHook]], object]) -> None:
    """Call this at exit with the hooks of the process, whose runs have ended then."""
    if action not in _session.when_ended:
        _session.when_ended.append(action)


def _end_with_child_process(*_: object) -> None:
    # A child that multiprocessing forked leaves by os._exit, past all atexit functions but not past its own finalizers.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _at_exit, exitpriority=0)


@guard.fence("ending a run", again=True)
def _finish(hook: BaseHook) -> None:
    # Repeating it is harmless, and a run that is not ended is incomplete.
    if guard.attempt(partial(finish_run, hook)) is not None:
        failure = guard.attempt(partial(finish_run, hook))
        if failure is not None:
            guard.say(f"ending the run in {hook.out_dir} failed ({guard.describe(failure)})")


@guard.fence("ending the runs", again=True)
def _at_exit() -> None:
    for hook in _session.hooks:
        _finish(hook)
    for action in _session.when_ended:
        action([*_session.hooks])
    for hook in _session.hooks:
        guard.attempt(hook.clear_away)


def _after_fork() -> None:
    overhead.begin_anew()
    # The thread, the claim and the open files are the parent's. A child that goes on training has a run of its own.
    for hook in _session.hooks:
        if hook.writing:
            failure = guard.attempt(hook.begin_anew)
            if failure is not None:
                hook.disable()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # Not now: a child of multiprocessing forgets its parent's finalizers first.
        util.register_after_fork(_end_with_child_process, _end_with_child_process)
