"""The one hook of the process, as scripts ask for it."""

from __future__ import annotations

from typing import TypeVar

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.core.hook import BaseHook
from smd_agent.errors import SMDebugError, SMDebugTypeError
from smd_agent.framework.hook import FrameworkHook

H = TypeVar("H", bound=FrameworkHook)


def obtain_hook(hook_class: type[H], json_config_path: str | None, create: bool) -> H | None:
    """The hook of this process, if it is one of this framework.

    Args:
        hook_class: the framework's hook.
        json_config_path: configuration for a new hook; if None, the one that the environment names.
        create: make the hook if there is none.

    Returns:
        None if there is none and none is to be made, no configuration exists, it is wrong (one line says so), or
        ``USE_SMDEBUG`` is off.
    """
    existing = session.current_of(hook_class)
    if existing is not None:
        return existing
    session.forget(session.framework_of(hook_class))
    if not create or not env.use_smdebug():
        return None
    try:
        return hook_class.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None
    except SMDebugError as error:
        guard.say(f"{error}; nothing is saved")
        return None


def set_hook(custom_hook: BaseHook) -> None:
    """Make this the hook of the process.

    Raises:
        SMDebugTypeError: it is no hook.
    """
    if not isinstance(custom_hook, BaseHook):
        raise SMDebugTypeError(f"{custom_hook!r} must be a hook")
    session.make_current(custom_hook)


def del_hook() -> None:
    """Forget the hook of the process; it is not closed."""
    session.forget()
