"""The variants of a Gluon training: plain, with our agent, with the old smdebug."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.arms import Arm, start_ours

if TYPE_CHECKING:
    from benchmarks.gluon import Training


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.mxnet")
    importlib.import_module("smd_agent.mxnet")


def load_old() -> None:
    """Import the old library."""
    importlib.import_module("smdebug.mxnet")


def register_old(folder: Path, options: dict[str, Any], subject: Training) -> None:
    """Register the old library's hook with the finished net, as its users write it in their script."""
    import smdebug.mxnet as smd

    reductions = options.get("reductions", "").split(",")
    names = [name for name in reductions if name and not name.endswith("_norm")]
    norms = [name.removesuffix("_norm") for name in reductions if name.endswith("_norm")]
    hook = smd.Hook(
        str(folder / "run"),
        save_config=smd.SaveConfig(save_interval=options["interval"]),
        reduction_config=smd.ReductionConfig(reductions=names, norms=norms) if "reductions" in options else None,
        include_collections=options["collections"],
    )
    hook.register_block(subject.net)
    hook.register_block(subject.criterion)


ARMS = {
    "plain": Arm(),
    "ours": Arm(load_ours, before=start_ours),
    "old": Arm(load_old, after=register_old),
}
