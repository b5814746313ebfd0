"""The variants of a TensorFlow training: plain, and with a debugger that saves nothing, reductions, or everything."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.arms import Arm, start_ours, start_ours_without_series

NEVER = 10**9


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.tensorflow")
    for name in ("keras_fit.packages", "tape.tape_loops", "sessions.hook"):
        importlib.import_module(f"smd_agent.tensorflow.{name}")


def start_unsaved(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for a run in which only step 0 is saved."""
    start_ours(folder, {**options, "interval": NEVER})


def start_raw(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for the tensors themselves, at every step."""
    start_ours(folder, {name: value for name, value in options.items() if name != "reductions"})


def load_old() -> None:
    """Import the old library."""
    importlib.import_module("smdebug.tensorflow")


def start_old(folder: Path, options: dict[str, Any]) -> None:
    """Have the script use the old library's hook of the kind named by the option `hook`, as its users write it."""
    import smdebug.tensorflow as smd

    from benchmarks.keras_workloads import script

    names = options["reductions"].split(",")
    hook: Any = getattr(smd, options["hook"])(
        str(folder / "run"),
        save_config=smd.SaveConfig(save_interval=options["interval"]),
        reduction_config=smd.ReductionConfig(
            reductions=[name for name in names if not name.endswith("_norm")],
            norms=[name.removesuffix("_norm") for name in names if name.endswith("_norm")],
        ),
        include_collections=options["collections"],
    )
    script.hooks = [hook]
    script.wrap_optimizer = hook.wrap_optimizer
    if options["hook"] == "KerasHook":
        script.wrap_tape = hook.wrap_tape


def start_old_unsaved(folder: Path, options: dict[str, Any]) -> None:
    """Have it use that hook for a run in which only step 0 is saved."""
    start_old(folder, {**options, "interval": NEVER})


ARMS = {
    "plain": Arm(),
    "unsaved": Arm(load_ours, before=start_unsaved),
    "ours": Arm(load_ours, before=start_ours),
    "ours_without_series": Arm(load_ours, before=start_ours_without_series),
    "reductions": Arm(load_ours, before=start_ours),
    "raw": Arm(load_ours, before=start_raw),
    "old_unsaved": Arm(load_old, before=start_old_unsaved),
    "old_reductions": Arm(load_old, before=start_old),
}
