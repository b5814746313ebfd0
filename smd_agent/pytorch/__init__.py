"""The PyTorch face: ``import smd_agent.pytorch as smd``."""

from smd_agent.framework import face
from smd_agent.framework.face import *  # noqa: F403
from smd_agent.framework.singleton import obtain_hook
from smd_agent.pytorch.collection import Collection
from smd_agent.pytorch.hook import Hook

__all__ = ["Collection", "Hook", "get_hook"]
__all__ += face.NAMES
__getattr__ = face.late_names(__name__)


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = False) -> Hook | None:
    """The hook of this process; see ``obtain_hook``."""
    return obtain_hook(Hook, json_config_path, create_if_not_exists)
