"""The same names as ``smd_agent.tensorflow``, for scripts that import them from here."""

from typing import TYPE_CHECKING, Any

from smd_agent.tensorflow import (
    Collection,
    CollectionKeys,
    EstimatorHook,
    KerasHook,
    ReductionConfig,
    SaveConfig,
    SaveConfigMode,
    SessionHook,
    del_hook,
    get_hook,
    modes,
    set_hook,
)

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


def __getattr__(name: str) -> Any:
    import smd_agent.tensorflow

    return getattr(smd_agent.tensorflow, name)
