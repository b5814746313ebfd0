"""What a run has saved of a scenario, counted in values that are right: equal to what the scenario itself computed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scenarios.player import LOOKED_AT, Array
from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError

Notes = Mapping[str, Array]

# Not of the scenario, but about the run.
_ALWAYS_SAID = re.compile(r"saving |saved |(?:no|\d+) findings?\b|no rule could judge|not judged ")


@dataclass(frozen=True)
class Captured:
    """One scenario's row, without its costs.

    Args:
        identical: whether weights, buffers and random states are those of a run without the agent, bit for bit.
        steps: of an iteration.
        weights, gradients, losses, outputs: how many were right, of how many.
        said: the agent's lines, without those that every run has.
    """

    identical: bool
    steps: str
    weights: str
    gradients: str
    losses: str
    outputs: str
    said: tuple[str, ...]


def examine(plain: Path, watched: Path, unsaved: Path, saved: Path) -> Captured:
    """Compare the folders of four variants, all of which have ended."""
    notes = load(plain)
    looked = _Looked(saved)
    outputs = {key: value for key, value in load(watched).items() if "|output|" in key}
    return Captured(
        identical=all(np.array_equal(load(folder)["digest"], notes["digest"]) for folder in (unsaved, saved, watched)),
        steps=looked.steps(),
        weights=looked.count(notes, "weight", "{}"),
        gradients=looked.count(notes, "gradient", "gradient/{}"),
        losses=looked.losses(notes),
        outputs=looked.outputs(outputs),
        said=tuple(said(saved)),
    )


def load(folder: Path) -> dict[str, Array]:
    """Return a variant's notes."""
    with np.load(folder / "notes.npz") as file:
        return dict(file)


def said(folder: Path) -> Iterator[str]:
    """Yield what the agent has said in a run, without its name in front."""
    for line in (folder / "stderr").read_text().splitlines():
        words = line.removeprefix("smd_agent: ")
        if words != line and not _ALWAYS_SAID.match(words):
            yield words.replace(str(folder / "run"), "the run")


class _Looked:
    """The saved values of the iterations that are looked at."""

    def __init__(self, folder: Path) -> None:
        notes = load(folder)
        self._trial: Trial | None = None
        if (folder / "run" / "index").is_dir():
            self._trial = create_trial(str(folder / "run"))
        last = {number: int(notes[f"{number}|step"]) for number in range(max(LOOKED_AT) + 1)}
        self._range = {number: range(last[number - 1] + 1, last[number] + 1) for number in LOOKED_AT}

    def steps(self) -> str:
        """Return how many steps of each mode the last iteration had."""
        if self._trial is None:
            return "none"
        modes = [self._trial.mode(step) for step in self._range[LOOKED_AT[-1]]]
        return " + ".join(
            f"{modes.count(mode)} {mode.name.lower()}" for mode in (ModeKeys.TRAIN, ModeKeys.EVAL) if mode in modes
        )

    def count(self, notes: Notes, kind: str, name: str) -> str:
        """Return how many tensors of a kind were saved right in all iterations, of how many there are."""
        keys = {key.split("|")[2] for key in notes if f"|{kind}|" in key}
        right = [all(self._has(name.format(key), n, notes[f"{n}|{kind}|{key}"]) for n in LOOKED_AT) for key in keys]
        wrong = [any(self._values(name.format(key), n) for n in LOOKED_AT) for key in keys]
        return fraction(sum(right), len(keys), sum(wrong) - sum(right))

    def outputs(self, notes: Notes) -> str:
        """Return of how many layers an output was saved right in all iterations in which they were called."""
        keys = {key.split("|")[2] for key in notes}
        right = wrong = 0
        for key in keys:
            called = [number for number in LOOKED_AT if f"{number}|output|{key}" in notes]
            names = [name for name in self._names() if name.startswith(f"{key}_output_")]
            found = [
                any(self._has(name, number, notes[f"{number}|output|{key}"]) for name in names) for number in called
            ]
            right += all(found)
            wrong += not all(found) and any(self._values(name, number) for name in names for number in called)
        return fraction(right, len(keys), wrong)

    def losses(self, notes: Notes) -> str:
        """Return how many losses of an iteration were saved right; one that is saved twice is wrong once."""
        kept = total = wrong = 0
        for number in LOOKED_AT:
            saved = [value for name in self._names("losses") for value in self._values(name, number)]
            expected = [value for key, value in notes.items() if key.startswith(f"{number}|loss|")]
            total += len(expected)
            for value in expected:
                match = next((i for i, other in enumerate(saved) if equal(other, value)), None)
                if match is not None:
                    del saved[match]
                    kept += 1
            wrong += len(saved)
        return fraction(kept // len(LOOKED_AT), total // len(LOOKED_AT), wrong)

    def _names(self, collection: str | None = None) -> list[str]:
        if self._trial is None:
            return []
        return list(self._trial.tensor_names(collection=collection))

    def _has(self, name: str, number: int, expected: Array) -> bool:
        return any(equal(value, expected) for value in self._values(name, number))

    def _values(self, name: str, number: int) -> list[Any]:
        """Return the values that a tensor was saved with in one iteration."""
        if self._trial is None or not self._trial.has_tensor(name):
            return []
        tensor = self._trial.tensor(name)
        try:
            return [tensor.value(step) for step in tensor.steps() if step in self._range[number]]
        except SMDebugError:
            return []


def equal(value: Array, expected: Array) -> bool:
    """Tell whether two arrays are equal bit for bit, but for the bits of NaN."""
    return value.shape == expected.shape and np.array_equal(value, expected, equal_nan=True)


def fraction(right: int, total: int, wrong: int) -> str:
    """Write a count of right values, and that of wrong ones if there are any."""
    words = f"{right}/{total}" if total else "–"
    return f"{words}, {wrong} wrong" if wrong else words
