"""The same names as ``smd_agent.tensorflow``, for scripts that import them from here."""

from smd_agent.framework import face
from smd_agent.framework.face import *  # noqa: F403
from smd_agent.tensorflow import Collection, EstimatorHook, KerasHook, SessionHook, get_hook

__all__ = ["Collection", "EstimatorHook", "KerasHook", "SessionHook", "get_hook"]
__all__ += face.NAMES
__getattr__ = face.late_names(__name__)
