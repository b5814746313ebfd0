"""Public names that the packages of all frameworks have, such as ``smd_agent.pytorch``; they import them by ``*``.

Each also has its hooks, its ``Collection`` and ``get_hook``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys as modes
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.framework.hook_for_scripts import del_hook, set_hook

__all__ = ["CollectionKeys", "ReductionConfig", "SaveConfig", "SaveConfigMode", "del_hook", "modes", "set_hook"]

# With those that are imported once they are used.
NAMES = [*__all__, "create_trial"]

if TYPE_CHECKING:
    from smd_agent.analysis.trial import create_trial

    __all__ += ["create_trial"]


def late_names(package: str) -> Callable[[str], Any]:
    """``__getattr__`` for a framework's package, by its dotted name: imports ``create_trial`` once it is used.

    A training process has no use for the reading side, nor for the libraries that it loads.
    """

    def find(name: str) -> Any:
        if name == "create_trial":
            from smd_agent.analysis.trial import create_trial

            return create_trial
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
