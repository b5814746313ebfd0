"""Public names for PyTorch: ``import smd_agent.pytorch as smd``."""

from smd_agent.framework import public_names
from smd_agent.framework.hook_for_scripts import obtain_hook
from smd_agent.framework.public_names import *  # noqa: F403
from smd_agent.pytorch.collection import Collection
from smd_agent.pytorch.hook import Hook

__all__ = ["Collection", "Hook", "get_hook"]
__all__ += public_names.NAMES
__getattr__ = public_names.late_names(__name__)


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Hook | None:
    """The hook of this process; see ``obtain_hook``."""
    return obtain_hook(Hook, json_config_path, create_if_not_exists)
