"""The MXNet face: ``import smd_agent.mxnet as smd``."""

from typing import TYPE_CHECKING, Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys as modes
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.framework.singleton import del_hook, set_hook
from smd_agent.mxnet.collection import Collection
from smd_agent.mxnet.hook import Hook
from smd_agent.mxnet.singleton import get_hook

if TYPE_CHECKING:
    from smd_agent.analysis.trial import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]


def __getattr__(name: str) -> Any:
    # A training process has no use for the reading side, nor for the libraries that it loads.
    if name == "create_trial":
        from smd_agent.analysis.trial import create_trial

        return create_trial
    raise AttributeError(f"module 'smd_agent.mxnet' has no attribute {name!r}")
