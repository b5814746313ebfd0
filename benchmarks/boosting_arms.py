"""The variants of a boosted training, named `ours_<what is saved>` and `old_<what is saved>`."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.arms import Arm, start_agent

if TYPE_CHECKING:
    from benchmarks.boosting import Boosting

COLLECTIONS = ("metrics", "trees", "average_shap", "full_shap")


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.xgboost")
    importlib.import_module("smd_agent.xgboost")


def load_old() -> None:
    """Import the old library."""
    importlib.import_module("smdebug.xgboost")


def start_ours(collection: str, folder: Path, options: dict[str, Any], series: bool = True) -> None:
    """Start our agent by its environment variable, to save by the options `interval` and `first`."""
    parameters = {"save_interval": options["interval"], "start_step": options["first"], "series": series}
    start_agent(folder, parameters, [collection])


def register_old(collection: str, folder: Path, options: dict[str, Any], subject: Boosting) -> None:
    """Give the training the old library's hook as a callback, as its users write it in their script."""
    import smdebug.xgboost as smd

    hook = smd.Hook(
        str(folder / "run"),
        save_config=smd.SaveConfig(save_interval=options["interval"], start_step=options["first"]),
        include_collections=[collection],
        train_data=subject.train,
        validation_data=subject.evaluation,
    )
    subject.callbacks.append(hook)


ARMS = {
    "plain": Arm(),
    **{f"ours_{name}": Arm(load_ours, before=partial(start_ours, name)) for name in COLLECTIONS},
    "without_series": Arm(load_ours, before=partial(start_ours, "metrics", series=False)),
    **{f"old_{name}": Arm(load_old, after=partial(register_old, name)) for name in COLLECTIONS},
}
