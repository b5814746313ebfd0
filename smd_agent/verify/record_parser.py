"""Records of an observed run, step by step; `smd_agent/framework/observer.py` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from smd_agent.framework.observer import MAIN, OTHERS, STEPS, VALUES


class Item(NamedTuple):
    """A tensor as it was noted.

    digest: of its bytes.
    dtype: as its framework calls it.
    shape: in elements.
    at: where its bytes begin in the file of values; -1 where they were not kept.
    """

    name: str
    digest: str
    dtype: str
    shape: tuple[int, ...]
    at: int


@dataclass(frozen=True)
class Step:
    """The notes after an update, or at the end of the program.

    Args:
        number: how many updates were before; None at the end.
        losses: since the update before.
        weights: of the optimizer.
        random: by generator its state, its place, and how often it has made numbers.
        buffers: what the models keep beside the weights, such as running statistics.
        keys: at the end, what the weights are of and their place there.
        buffer_keys: the same of the buffers.
    """

    number: int | None
    losses: list[Item]
    weights: list[Item]
    random: dict[str, list[Any]]
    buffers: list[Item] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    buffer_keys: list[str] = field(default_factory=list)


@dataclass
class Process:
    """A process of a run: the program itself, or a rank.

    Args:
        folder: of the run's records.
        name: ``main``, or ``rank-`` and its number.

    Attributes:
        versions: of the frameworks that it has imported, once its steps have been walked.
        failures: why it is not observed to its end.
    """

    folder: Path
    name: str
    versions: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def steps(self) -> Iterator[Step]:
        """Walk through its steps, and how all stood at its end."""
        number = 0
        try:
            file = (self.folder / (self.name + STEPS)).open(encoding="utf-8")
        except FileNotFoundError:
            return
        with file:
            for line in file:
                record = json.loads(line)
                kind = record["kind"]
                if kind == "framework":
                    self.versions[record["name"]] = record["version"]
                elif kind == "failed":
                    self.failures.append(f"{record['what']} ({record['error']})")
                else:
                    yield _step(record, number if kind == "step" else None)
                    number += 1

    def data(self, item: Item, size: int) -> bytes | None:
        """The bytes of a tensor; None where they were not kept."""
        if item.at < 0:
            return None
        with (self.folder / (self.name + VALUES)).open("rb") as file:
            file.seek(item.at)
            return file.read(size)


def processes(folder: Path) -> list[str]:
    """The names of the processes that have been observed, the program itself first."""
    names = sorted(path.name.removesuffix(STEPS) for path in folder.glob("*" + STEPS))
    return sorted(names, key=lambda name: name != MAIN)


def unobserved(folder: Path) -> int:
    """Number of other Python processes that the program has started."""
    return sum(1 for _ in folder.glob(OTHERS + "*"))


def _step(record: dict[str, Any], number: int | None) -> Step:
    losses, weights, buffers = (
        [Item(n, d, t, tuple(s), at) for n, d, t, s, at in record[key]] for key in ("losses", "weights", "buffers")
    )
    keys, buffer_keys = (record.get(name, []) for name in ("keys", "buffer_keys"))
    return Step(number, losses, weights, record["random"], buffers, keys, buffer_keys)
