"""The XGBoost face: ``import smd_agent.xgboost as smd``."""

from smd_agent.core.collection import Collection
from smd_agent.framework import face
from smd_agent.framework.face import *  # noqa: F403
from smd_agent.framework.singleton import obtain_hook
from smd_agent.xgboost.hook import Hook

__all__ = ["Collection", "Hook", "get_hook"]
__all__ += face.NAMES
__getattr__ = face.late_names(__name__)


def get_hook(json_config_path: str | None = None) -> Hook | None:
    """The hook of this process, made now if there is none; see ``obtain_hook``."""
    return obtain_hook(Hook, json_config_path, create=True)
