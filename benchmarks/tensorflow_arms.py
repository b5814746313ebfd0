"""The variants of a TensorFlow training: plain, and with our agent as it saves nothing, reductions, or everything."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.arms import Arm, start_ours

NEVER = 10**9


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.tensorflow")
    for name in ("keras_watch", "tape", "session_hook"):
        importlib.import_module(f"smd_agent.tensorflow.{name}")


def start_unsaved(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for a run in which only step 0 is saved."""
    start_ours(folder, {**options, "interval": NEVER})


def start_raw(folder: Path, options: dict[str, Any]) -> None:
    """Start our agent for the tensors themselves, at every step."""
    start_ours(folder, {name: value for name, value in options.items() if name != "reductions"})


ARMS = {
    "plain": Arm(),
    "unsaved": Arm(load_ours, before=start_unsaved),
    "reductions": Arm(load_ours, before=start_ours),
    "raw": Arm(load_ours, before=start_raw),
}
