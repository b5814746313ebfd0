"""The TensorFlow face: ``import smd_agent.tensorflow as smd``."""

from smd_agent.framework import face
from smd_agent.framework.face import *  # noqa: F403
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_hook import KerasHook
from smd_agent.tensorflow.session_hook import EstimatorHook, SessionHook
from smd_agent.tensorflow.singleton import get_hook
from smd_agent.tensorflow.wrapping import Watchers

__all__ = ["Collection", "EstimatorHook", "KerasHook", "SessionHook", "get_hook"]
__all__ += face.NAMES
__getattr__ = face.late_names(__name__)

TensorflowHook.watching = Watchers()
