"""The step in which two observed runs part, and the loss, weight or generator of random numbers that is the first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from smd_agent.verify.record_parser import Item, Process, Step

# In bytes.
_LONGEST = 120


@dataclass(frozen=True)
class Difference:
    """The first thing in which two runs differ.

    Args:
        what: such as ``weight conv1.weight``.
        here: what the first run has there.
        there: what the second one has.
        step: at which it was noted; None where no step is meant, such as the exit code, or at the end of the program.
        at_end: it was noted when the program ended.
        process: in which it was, where that is not the program itself.
    """

    what: str
    here: str
    there: str
    step: int | None = None
    at_end: bool = False
    process: str = ""

    @property
    def order(self) -> float:
        """A number that is larger for what comes later."""
        return math.inf if self.step is None else self.step


@dataclass
class Compared:
    """The count of what was compared of two runs.

    Attributes:
        steps: how many steps both have.
        losses: how many values of losses were the same.
        weights: how many tensors were the same, all steps taken together.
        buffers: how many of those that models keep beside them.
        random: by generator: whether its numbers were the same, or only how many were drawn.
    """

    steps: int = 0
    losses: int = 0
    weights: int = 0
    buffers: int = 0
    random: dict[str, bool] = field(default_factory=dict)


def first_difference(here: Process, there: Process, compared: Compared, unseeded: set[str]) -> Difference | None:
    """The first difference of two processes; None where they did the same.

    Args:
        here: the first one.
        there: the second one.
        compared: is told what was the same.
        unseeded: generators of which only is compared how many numbers were drawn.
    """
    for one, other in zip_longest(here.steps(), there.steps()):
        if one is None or other is None or (one.number is None) != (other.number is None):
            return _ended(one, other)
        found = _of_step(one, other, here, there, compared, unseeded)
        if found is not None:
            return found
        compared.steps += one.number is not None
        compared.losses += len(one.losses)
        compared.weights += len(_weights(one, other)[0])
        compared.buffers += len(_buffers(one, other)[0])
    return None


def unseeded_generators(here: Process, there: Process) -> set[str]:
    """Generators whose states are others in two runs of one program from the first step on: nobody has seeded them."""
    found: set[str] = set()
    for one, other in zip(here.steps(), there.steps(), strict=False):
        common = one.random.keys() & other.random.keys()
        found |= {name for name in common if one.random[name][:2] != other.random[name][:2]}
    return found


def _of_step(
    one: Step, other: Step, here: Process, there: Process, compared: Compared, unseeded: set[str]
) -> Difference | None:
    kinds = (
        ("loss", one.losses, other.losses),
        ("weight", *_weights(one, other)),
        ("buffer", *_buffers(one, other)),
    )
    for kind, mine, theirs in kinds:
        if len(mine) != len(theirs):
            plural = "losses" if kind == "loss" else f"{kind}s"
            return _placed(one, f"number of {plural}", str(len(mine)), str(len(theirs)))
        for a, b in zip(mine, theirs, strict=True):
            if (a.digest, a.dtype, a.shape) != (b.digest, b.dtype, b.shape):
                name = a.name if a.name == kind else f"{kind} {a.name}"
                where, values = _values(a, b, here, there)
                return _placed(one, name + where, *values)
    for name in sorted(one.random.keys() & other.random.keys()):
        strictly = name not in unseeded
        compared.random[name] = strictly
        own, others = one.random[name], other.random[name]
        if (own[:2] if strictly else own[1:]) != (others[:2] if strictly else others[1:]):
            return _placed(one, f"random state of {name}", _state(own), _state(others))
    return None


def _weights(one: Step, other: Step) -> tuple[list[Item], list[Item]]:
    """Those that are compared: at the end, of what is alive in both runs."""
    if one.number is not None:
        return one.weights, other.weights
    return _of_both(*(dict(zip(step.keys, step.weights, strict=True)) for step in (one, other)))


def _buffers(one: Step, other: Step) -> tuple[list[Item], list[Item]]:
    if one.number is not None:
        return one.buffers, other.buffers
    return _of_both(*(dict(zip(step.buffer_keys, step.buffers, strict=True)) for step in (one, other)))


def _of_both(mine: dict[str, Item], theirs: dict[str, Item]) -> tuple[list[Item], list[Item]]:
    common = [key for key in mine if key in theirs]
    return [mine[key] for key in common], [theirs[key] for key in common]


def _placed(step: Step, what: str, here: str, there: str) -> Difference:
    return Difference(what, here, there, step.number, at_end=step.number is None)


def _ended(one: Step | None, other: Step | None) -> Difference:
    number = next((step.number for step in (one, other) if step is not None and step.number is not None), None)
    here, there = ("none" if step is None or step.number is None else "made" for step in (one, other))
    return Difference("the step itself" if number is not None else "the end of the program", here, there, number)


def _state(state: list[Any]) -> str:
    digest, place, _ = state
    text = f"state {digest[:12]}"
    return f"{text}, at number {place[0]}" if isinstance(place, list) and place[0] is not None else text


def _values(a: Item, b: Item, here: Process, there: Process) -> tuple[str, tuple[str, str]]:
    """The element that differs first, as text, and both values."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return "", (f"{a.dtype} {a.shape}", f"{b.dtype} {b.shape}")
    if a.dtype == "text":
        return "", (_text(a, here), _text(b, there))
    mine, theirs = _array(a, here), _array(b, there)
    if mine is None or theirs is None:
        return "", (_digest(a), _digest(b))
    apart = _apart(mine, theirs)
    first = apart[0]
    values = str(mine[first]), str(theirs[first])
    if len(mine) == 1:
        return "", values
    index = ", ".join(map(str, np.unravel_index(first, a.shape)))
    return f"[{index}] ({len(apart)} of {len(mine)} elements differ)", values


def _apart(one: np.ndarray, other: np.ndarray) -> list[int]:
    """Indices of elements whose bytes differ."""
    mine, theirs = (array.view(np.uint8).reshape(len(array), -1) for array in (one, other))
    return [int(index) for index in np.flatnonzero((mine != theirs).any(axis=1))]


def _text(item: Item, process: Process) -> str:
    data = process.data(item, _LONGEST)
    return _digest(item) if data is None else data.decode(errors="replace")


def _digest(item: Item) -> str:
    return f"digest {item.digest[:12]}"


def _array(item: Item, process: Process) -> np.ndarray | None:
    """The elements of a tensor in one row; None where they were not kept, or are of a type that NumPy has not."""
    half = item.dtype == "bfloat16"
    try:
        dtype = np.dtype(np.uint16 if half else item.dtype)
    except TypeError:
        return None
    data = process.data(item, dtype.itemsize * math.prod(item.shape))
    if data is None:
        return None
    array = np.frombuffer(data, dtype)
    # The upper half of a float32.
    return (array.astype(np.uint32) << 16).view(np.float32) if half else array
