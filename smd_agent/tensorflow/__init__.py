"""The TensorFlow face: ``import smd_agent.tensorflow as smd``."""

from typing import TYPE_CHECKING, Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys as modes
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.framework.singleton import del_hook, set_hook
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_hook import KerasHook
from smd_agent.tensorflow.session_hook import EstimatorHook, SessionHook
from smd_agent.tensorflow.singleton import get_hook
from smd_agent.tensorflow.wrapping import Watchers

if TYPE_CHECKING:
    from smd_agent.analysis.trial import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]

TensorflowHook.watching = Watchers()


def __getattr__(name: str) -> Any:
    # A training process has no use for the reading side, nor for the libraries that it loads.
    if name == "create_trial":
        from smd_agent.analysis.trial import create_trial

        return create_trial
    raise AttributeError(f"module 'smd_agent.tensorflow' has no attribute {name!r}")
