"""The same names as ``smd_agent.tensorflow``, for scripts that import them from here."""

from smd_agent.framework import public_names
from smd_agent.framework.public_names import *  # noqa: F403
from smd_agent.tensorflow import Collection, EstimatorHook, KerasHook, SessionHook, get_hook

__all__ = ["Collection", "EstimatorHook", "KerasHook", "SessionHook", "get_hook"]
__all__ += public_names.NAMES
__getattr__ = public_names.late_names(__name__)
