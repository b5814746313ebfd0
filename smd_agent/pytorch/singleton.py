"""The one hook of the process, as PyTorch scripts ask for it."""

from __future__ import annotations

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.core.hook import BaseHook
from smd_agent.errors import SMDebugError
from smd_agent.pytorch.hook import Hook


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Hook | None:
    """The hook of this process.

    Args:
        json_config_path: configuration for a new hook; if None, the one that the environment names.
        create_if_not_exists: make the hook if there is none.

    Returns:
        None if there is none and none is to be made, no configuration exists, it is wrong (one line says so), or
        ``USE_SMDEBUG`` is off.
    """
    existing = session.current()
    if isinstance(existing, Hook):
        return existing
    session.forget()
    if not create_if_not_exists or not env.use_smdebug():
        return None
    try:
        return Hook.create_from_json_file(json_config_path)
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
    session.make_current(custom_hook)


def del_hook() -> None:
    """Forget the hook of the process; it is not closed."""
    session.forget()
