"""A script that prints its losses, run with the agent and without: what was saved of it, by collection and value.

It prints a line for each loss, its mode and its value, such as ``TRAIN 0.25``; other lines are for comparing alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.compare import assert_untouched, run_both
from smd_agent.core.modes import ModeKeys


def every_step(*collections: str | dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """Return a hook configuration that saves these collections, by name or as they stand in it, in every step."""
    listed = [{"CollectionName": name} if isinstance(name, str) else name for name in collections]
    return {"HookParameters": {"save_interval": 1, **parameters}, "CollectionConfigurations": listed}


class Printed:
    """A script that has been run with the agent and without, and has printed the same.

    Args:
        runner: a ``harness.runner.Runner``.
        script: its path.
        words: its arguments.
        config: the hook's configuration.

    Attributes:
        lines: what the agent has said.
        trial: what it has saved.
        losses: what the script has printed, by the names of the modes.
    """

    def __init__(self, runner: Any, script: Path, *words: str, config: dict[str, Any]) -> None:
        both = run_both(runner, script, *words, config=config, strict=True)
        assert_untouched(both)
        self.lines = both.said
        assert any("smd_agent: saved" in line for line in self.lines), self.lines
        self.trial = both.trial
        self.losses: dict[str, list[float]] = {"TRAIN": [], "EVAL": []}
        for line in both.plain.stdout.splitlines():
            mode, _, number = line.partition(" ")
            if mode in self.losses:
                self.losses[mode].append(float(number))

    def names(self, collection: str, mode: ModeKeys = ModeKeys.TRAIN, start: str = "") -> set[str]:
        """Return the tensors of a collection whose names begin so."""
        found = self.trial.tensor_names(collection=collection, mode=mode)
        return {name for name in found if name.startswith(start)}

    def values(self, name: str, mode: ModeKeys = ModeKeys.TRAIN) -> list[float]:
        """Return the mean of a tensor in each of its steps."""
        tensor = self.trial.tensor(name)
        return [float(tensor.value(step, mode=mode).mean()) for step in tensor.steps(mode=mode)]

    def is_what_was_printed(self, name: str, *modes: ModeKeys) -> bool:
        """Return whether a tensor is the loss that the script has printed in these modes."""
        return all(self.values(name, mode) == pytest.approx(self.losses[mode.name], rel=1e-5) for mode in modes)
