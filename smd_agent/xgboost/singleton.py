"""The one hook of the process, as XGBoost scripts ask for it."""

from __future__ import annotations

from smd_agent.framework.singleton import obtain_hook
from smd_agent.xgboost.hook import Hook


def get_hook(json_config_path: str | None = None) -> Hook | None:
    """The hook of this process, made now if there is none.

    Args:
        json_config_path: configuration for a new hook; if None, the one that the environment names.

    Returns:
        None if no configuration exists, it is wrong (one line says so), or ``USE_SMDEBUG`` is off.
    """
    return obtain_hook(Hook, json_config_path, create=True)
