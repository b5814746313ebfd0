"""The variants a workload is run in: plain, with our agent, with the old smdebug.

Ours is reached as an unchanged script reaches it: through the environment, before the model exists.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.workloads import Training


def nothing(*_: object) -> None:
    """Leave the run as it is."""


@dataclass(frozen=True)
class Arm:
    """What is imported, and what is done before the model is built and after.

    alone: the framework has started no thread of its own.
    """

    load: Callable[[], None] = nothing
    before: Callable[[Path, dict[str, Any]], None] = nothing
    after: Callable[[Path, dict[str, Any], Any], None] = nothing
    alone: bool = False


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.pytorch")
    importlib.import_module("smd_agent.pytorch")


def load_old() -> None:
    """Import the old library."""
    importlib.import_module("smdebug.pytorch")


def start_ours(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent by its environment variable.

    Options: `interval`, `collections` and, where wanted, `reductions` to save instead of values, and `include_regex`.
    """
    parameters = {"save_interval": options["interval"]}
    parameters.update((name, options[name]) for name in ("reductions", "include_regex") if name in options)
    start_agent(folder, parameters, options["collections"])


def start_ours_deaf(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent so that it looks for no requests."""
    start_agent(folder, {"save_interval": options["interval"], "tap": False}, options["collections"])


def start_ours_without_series(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent so that no step has a row of the series."""
    start_agent(folder, {"save_interval": options["interval"], "series": False}, options["collections"])


def start_ours_off(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent so that it has nothing to do in steps that are not saved: no series, no look for requests."""
    off = {"save_interval": options["interval"], "series": False, "tap": False}
    start_agent(folder, off, options["collections"])


def start_ours_live(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent so that all rules look on."""
    parameters = {"save_interval": options["interval"], "live_rules": "all"}
    start_agent(folder, parameters, options["collections"])


def start_agent(folder: Path, parameters: dict[str, Any], collections: Sequence[str]) -> None:
    """Start our agent as it starts itself where its environment variable is set."""
    os.environ["SMD_AGENT_HOOK"] = json.dumps(
        {
            "LocalPath": str(folder / "run"),
            "HookParameters": parameters,
            "CollectionConfigurations": [{"CollectionName": name} for name in collections],
        }
    )
    from smd_agent import boot

    boot.start()


def start_ours_facts(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for the facts that rules look at, too."""
    from smd_agent.framework.training_facts import COLLECTIONS

    start_ours(folder, {**options, "collections": [*options["collections"], *COLLECTIONS]})


def start_ours_raw(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for the same tensors, unreduced."""
    start_ours(folder, {name: value for name, value in options.items() if name != "reductions"})


def register_old(folder: Path, options: dict[str, Any], subject: Training) -> None:
    """Register the old library's hook with the finished model, as its users write it in their script."""
    import smdebug.pytorch as smd

    reductions = options.get("reductions", "").split(",")
    names = [name for name in reductions if name and not name.endswith("_norm")]
    norms = [name.removesuffix("_norm") for name in reductions if name.endswith("_norm")]
    hook = smd.Hook(
        str(folder / "run"),
        save_config=smd.SaveConfig(save_interval=options["interval"]),
        reduction_config=smd.ReductionConfig(reductions=names, norms=norms) if "reductions" in options else None,
        include_regex=options.get("include_regex"),
        include_collections=options["collections"],
    )
    hook.register_module(subject.model)
    hook.register_loss(subject.criterion)


ARMS = {
    "plain": Arm(),
    "plain_alone": Arm(alone=True),
    "ours": Arm(load_ours, before=start_ours),
    "ours_deaf": Arm(load_ours, before=start_ours_deaf),
    "ours_without_series": Arm(load_ours, before=start_ours_without_series),
    "ours_off": Arm(load_ours, before=start_ours_off),
    "ours_live": Arm(load_ours, before=start_ours_live),
    "ours_facts": Arm(load_ours, before=start_ours_facts),
    "ours_raw": Arm(load_ours, before=start_ours_raw),
    "old": Arm(load_old, after=register_old),
}
