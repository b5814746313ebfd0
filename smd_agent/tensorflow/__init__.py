"""Public names for TensorFlow: ``import smd_agent.tensorflow as smd``."""

from smd_agent import session
from smd_agent.errors import SMDebugValueError
from smd_agent.framework import public_names
from smd_agent.framework.hook_for_scripts import obtain_hook
from smd_agent.framework.public_names import *  # noqa: F403
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_fit.hook import KerasHook
from smd_agent.tensorflow.sessions.hook import EstimatorHook, SessionHook
from smd_agent.tensorflow.wrapping import Watchers

__all__ = ["Collection", "EstimatorHook", "KerasHook", "SessionHook", "get_hook"]
__all__ += public_names.NAMES
__getattr__ = public_names.late_names(__name__)

TensorflowHook.watching = Watchers()

_CLASSES: dict[str, type[TensorflowHook]] = {
    "keras": KerasHook,
    "session": SessionHook,
    "estimator": EstimatorHook,
}


def get_hook(
    hook_type: str | None = None, json_config_path: str | None = None, create_if_not_exists: bool = False
) -> TensorflowHook | None:
    """The hook of this process, whatever its type.

    Args:
        hook_type: what to make if there is none: ``"keras"``, ``"session"`` or ``"estimator"``; the first, if None.
        json_config_path: configuration for a new hook; if None, the one that the environment names.
        create_if_not_exists: make the hook if there is none.

    Returns:
        None if there is none and none is to be made, no configuration exists, it is wrong (one line says so), or
        ``USE_SMDEBUG`` is off.

    Raises:
        SMDebugValueError: there is no such type of hook.
    """
    if hook_type is not None and hook_type not in _CLASSES:
        raise SMDebugValueError(f"hook_type is {hook_type!r}, allowed are {', '.join(map(repr, _CLASSES))} and None")
    existing = session.current_of(TensorflowHook)
    if existing is not None:
        return existing
    return obtain_hook(_CLASSES[hook_type or "keras"], json_config_path, create_if_not_exists)
