"""Public names for MXNet: ``import smd_agent.mxnet as smd``."""

from smd_agent.framework import public_names
from smd_agent.framework.hook_for_scripts import obtain_hook
from smd_agent.framework.public_names import *  # noqa: F403
from smd_agent.mxnet.collection import Collection
from smd_agent.mxnet.hook import Hook

__all__ = ["Collection", "Hook", "get_hook"]
__all__ += public_names.NAMES
__getattr__ = public_names.late_names(__name__)


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = True) -> Hook | None:
    """The hook of this process, made now if there is none, as the old library does; see ``obtain_hook``."""
    return obtain_hook(Hook, json_config_path, create_if_not_exists)
