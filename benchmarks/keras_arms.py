"""The variants of a Keras training: plain and with our agent. The old library does not run with these releases."""

from __future__ import annotations

import importlib

from benchmarks.arms import Arm, start_ours, start_ours_raw


def load_ours() -> None:
    """Import what a capture needs, without starting one."""
    importlib.import_module("smd_agent.patches.tensorflow")
    importlib.import_module("smd_agent.tensorflow.keras_watch")


ARMS = {
    "plain": Arm(),
    "ours": Arm(load_ours, before=start_ours),
    "ours_raw": Arm(load_ours, before=start_ours_raw),
}
