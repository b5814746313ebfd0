"""The one hook of the process, as MXNet scripts ask for it."""

from __future__ import annotations

from smd_agent.framework.singleton import obtain_hook
from smd_agent.mxnet.hook import Hook


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = True) -> Hook | None:
    """The hook of this process; made now if there is none, as the old library does for MXNet.

    Args:
        json_config_path: configuration for a new hook; if None, the one that the environment names.
        create_if_not_exists: make the hook if there is none.

    Returns:
        None if there is none and none is to be made, no configuration exists, it is wrong (one line says so), or
        ``USE_SMDEBUG`` is off.
    """
    return obtain_hook(Hook, json_config_path, create_if_not_exists)
