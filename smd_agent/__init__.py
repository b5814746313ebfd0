"""Saves tensors of a training script nobody edited, and reads them back.

``python -m smd_agent train.py`` or ``SMDEBUG_CONFIG_FILE_PATH=hook.json`` captures;
``smd_agent.create_trial(path)`` reads. Public names are loaded on first use, because every armed interpreter imports
this package.
"""

# Nothing here is newer than Python 3.6, so that __main__ can say to an old one that it is too old.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from smd_agent.analysis.trial import create_trial
    from smd_agent.core.collection import Collection
    from smd_agent.core.collection_keys import CollectionKeys
    from smd_agent.core.modes import ModeKeys as modes
    from smd_agent.core.reduction_config import ReductionConfig
    from smd_agent.core.save_config import SaveConfig, SaveConfigMode

__version__ = "0.1.0"

__all__ = [
    "Collection",
    "CollectionKeys",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "modes",
]

_HOMES = {
    "Collection": ("smd_agent.core.collection", "Collection"),
    "CollectionKeys": ("smd_agent.core.collection_keys", "CollectionKeys"),
    "ReductionConfig": ("smd_agent.core.reduction_config", "ReductionConfig"),
    "SaveConfig": ("smd_agent.core.save_config", "SaveConfig"),
    "SaveConfigMode": ("smd_agent.core.save_config", "SaveConfigMode"),
    "create_trial": ("smd_agent.analysis.trial", "create_trial"),
    "modes": ("smd_agent.core.modes", "ModeKeys"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'smd_agent' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value
