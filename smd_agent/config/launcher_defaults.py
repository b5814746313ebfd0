"""Defaults of the launcher: what it saves of a program where no hook file and no option says so."""

from __future__ import annotations

from typing import Any

from smd_agent.core.reduction_config import SMALL, STATISTICS

# In a hook file the collection of this name stands for what all the others hold; only save_all is every tensor.
_EVERY_COLLECTION = [{"CollectionName": "all"}]
# A step of the mode GLOBAL is dearer than others, such as a boosting round, or rarer: its default is the framework's.
_MODES = ("train", "eval", "predict")
_STEPS = {
    **{f"{mode}.save_interval": 100 for mode in _MODES},
    **{f"{mode}.save_steps": "0,1,2,3,5,10,20,50" for mode in _MODES},
    "save_early": True,
    "save_last": True,
    "within_budget": True,
}
_FORM = {"reductions": STATISTICS, "save_shape": True, "save_raw_up_to": SMALL}


def default_content() -> dict[str, Any]:
    """Return the hook file's content that counts where there is neither."""
    parameters = {**_STEPS, **_FORM}
    return {"HookParameters": parameters, "CollectionConfigurations": _EVERY_COLLECTION}
