"""A script run with the agent and without: what both printed, how they ended, and what was saved.

This is the one place where the two are compared. A subject prints a digest of its results, such as its weights and the
next random numbers, so that runs which print the same have computed the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np

from smd_agent.analysis.tensor import Tensor
from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import TensorUnavailableForStep

OURS = "smd_agent: "


@dataclass(frozen=True)
class Both:
    """The run of a script without the agent and the one with it, which saves to ``folder``."""

    plain: CompletedProcess[str]
    agent: CompletedProcess[str]
    folder: Path | None = None

    @cached_property
    def trial(self) -> Trial:
        """What the run with the agent has saved."""
        return create_trial(str(self.folder))

    @property
    def said(self) -> list[str]:
        """What the agent has said, by lines."""
        return said(self.agent)


def run_both(
    runner: Any,
    script: Path,
    *words: str,
    plain: CompletedProcess[str] | None = None,
    name: str = "run",
    config: dict[str, Any] | None = None,
    strict: bool = False,
    **variables: str,
) -> Both:
    """Run a script without the agent, and with it by the environment variable.

    Args:
        runner: a ``harness.runner.Runner``.
        script: its path.
        words: its arguments.
        plain: its run without the agent, where that was run before.
        name: of the folder for the run with the agent.
        config: its hook configuration.
        strict: a failure of the agent's ends the run.
        variables: of the environment, in both runs.
    """
    if plain is None:
        plain = runner.plain(script, *words, **variables)
    more = {"SMD_AGENT_STRICT": "1"} if strict else {}
    agent = runner.by_variable(script, *words, name=name, config=config, **more, **variables)
    return Both(plain, agent, runner.folder / name)


def assert_untouched(
    both: Both,
    *,
    code: int | None = 0,
    seen: Callable[[str], object] = str,
    stderr: bool = True,
    ours: str = OURS,
) -> None:
    """Assert that a script has printed the same and ended alike with the agent and without.

    Args:
        both: its runs.
        code: the exit code of both; None allows any that they share.
        seen: what is compared of stdout; by default all of it.
        stderr: whether the lines that the script itself has written there are compared too. TensorFlow, torchrun and
            Dask write times and numbers of processes there.
        ours: what lines on stderr begin with that the agent may add.
    """
    plain, agent = both.plain, both.agent
    assert code is None or plain.returncode == code, plain.stderr
    assert agent.returncode == plain.returncode, agent.stderr
    assert seen(agent.stdout) == seen(plain.stdout), agent.stderr
    if stderr:
        assert own_lines(agent, ours) == own_lines(plain, ours)


def sorted_lines(text: str) -> list[str]:
    """Return what is printed by processes beside each other, whose order is nobody's."""
    return sorted(text.splitlines())


def said(result: CompletedProcess[str]) -> list[str]:
    """Return what the agent has said in a run, by lines."""
    return [line for line in result.stderr.splitlines() if line.startswith(OURS)]


def own_lines(result: CompletedProcess[str], ours: str = OURS) -> list[str]:
    """Return the lines of stderr that are not the agent's, without times of day, nor what TensorFlow has for them."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith(ours)]
    return [re.sub(r"(?<=^[IWEF]0000) +[\d:.]+ +\d+|\d\d:\d\d:\d\d", "", line) for line in lines]


def noted(file: Path) -> dict[str, np.ndarray]:
    """Return the arrays that a script has stored in a file."""
    with np.load(file) as found:
        return dict(found)


def saved_steps(trial: Trial) -> dict[tuple[str, ModeKeys], list[int]]:
    """Return at which steps each tensor was saved, by name and mode, but for lines of the program.

    Whoever wraps what the agent has replaced has lines of their own.
    """
    names = [name for name in trial.tensor_names() if not name.startswith("line/")]
    return {(name, mode): trial.tensor(name).steps(mode=mode) for name in names for mode in ModeKeys}


def saved_values(trial: Trial) -> dict[tuple[str, ModeKeys, int], np.ndarray]:
    """Return all values of a run, by name, mode and step; of a small tensor, the steps at which it was saved whole."""
    found = {}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        # A step of a mode is read once, under the number that it has over all modes.
        by_step = {step: _value(tensor, step) for step in tensor.steps()}
        for mode in ModeKeys:
            for step in tensor.steps(mode=mode):
                number = trial.global_step(mode, step)
                assert number is not None
                value = by_step[number]
                if value is not None:
                    found[name, mode, step] = value
    return found


def _value(tensor: Tensor, step: int) -> np.ndarray | None:
    try:
        return tensor.value(step)
    except TensorUnavailableForStep:
        if not tensor.reduction_values(step):
            raise
        return None


def assert_same_values(found: dict[Any, np.ndarray], expected: dict[Any, np.ndarray]) -> None:
    """Assert that two runs have saved the same, value by value."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key].dtype == value.dtype, key
        np.testing.assert_array_equal(found[key], value, err_msg=str(key))
