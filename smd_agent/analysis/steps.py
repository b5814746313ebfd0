"""The steps of a run: how the modes count them, which are complete, and the names that are stored in them.

A step is complete when every worker has written it. Workers write in order, so a complete step also completes all
before it: what a worker has not written by then, it never will.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import REDUCTION_PREFIX, without_output_numbers
from smd_agent.core.reduction_config import HISTOGRAM, OPS

if TYPE_CHECKING:
    from smd_agent.core.names import Op
    from smd_agent.formats.index import Names, Payload
    from smd_agent.storage.index_files import StepIndex


class StepState(Enum):
    """The state of a step while its run may be going on."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class StepTable:
    """The steps found so far.

    ``num_workers`` is how many workers make a step complete, ``last_complete_step`` the last one that is (-1: none),
    and ``ended`` is set once no more steps can come: then every step is complete.

    Args:
        wait_window: the number of incomplete steps from which on the older half of them is taken as it is.
    """

    def __init__(self, wait_window: int) -> None:
        self.num_workers = 1
        self.last_complete_step = -1
        self.ended = False
        self._wait_window = wait_window
        self._files: dict[int, dict[str, StepIndex]] = {}
        self._workers: set[str] = set()
        self._mode_steps: dict[int, tuple[ModeKeys, int]] = {}
        self._global_steps: dict[ModeKeys, dict[int, int]] = {}
        # Of workers that take other steps than the first: their files by what they count the step as.
        self._elsewhere: dict[tuple[ModeKeys, int], dict[str, StepIndex]] = {}

    def add(self, files: Iterable[StepIndex]) -> None:
        """Take in index files that have been read."""
        for file in files:
            self._workers.add(file.worker)
            self._files.setdefault(file.step, {})[file.worker] = file
            mode, mode_step = file.index.mode, file.index.mode_step
            self._mode_steps.setdefault(file.step, (mode, mode_step))
            if mode is not ModeKeys.GLOBAL:
                home = self._global_steps.setdefault(mode, {}).setdefault(mode_step, file.step)
                if home != file.step:
                    self._elsewhere.setdefault((mode, mode_step), {})[file.worker] = file
        self.settle()

    def settle(self) -> None:
        """Find the last complete step; to be called when ``num_workers`` has changed."""
        later = sorted(step for step in self._files if step > self.last_complete_step)
        complete = [step for step in later if len(self._files[step]) >= self.num_workers]
        if complete:
            self.last_complete_step = complete[-1]
        incomplete = later[bisect_left(later, self.last_complete_step + 1) :]
        if len(incomplete) > self._wait_window:
            self.last_complete_step = incomplete[max(self._wait_window // 2, 1) - 1]

    def end(self) -> None:
        """Take every step as complete: no more can come."""
        self.ended = True
        self.last_complete_step = max([self.last_complete_step, *self._files])

    def files(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> Mapping[str, StepIndex]:
        """Return the index files of a step by worker; empty when it was not saved.

        A step of a mode is what each worker counts as that: workers that evaluate at different times have it at
        different global steps.
        """
        if mode is ModeKeys.GLOBAL:
            return self._files.get(step, {})
        home = self._global_steps.get(mode, {}).get(step, -1)
        files = self._files.get(home, {})
        own = {
            worker: file for worker, file in files.items() if (file.index.mode, file.index.mode_step) == (mode, step)
        }
        return {**own, **self._elsewhere.get((mode, step), {})}

    def modes(self) -> KeysView[ModeKeys]:
        """Return the modes seen, without GLOBAL."""
        return self._global_steps.keys()

    def workers(self) -> set[str]:
        """Return the workers that wrote a step."""
        return set(self._workers)

    def steps(self, mode: ModeKeys, incomplete: bool = False) -> list[int]:
        """Return the steps of a mode in order, as the mode counts them; GLOBAL has those of all modes."""
        if mode is ModeKeys.GLOBAL:
            return sorted(step for step in self._files if incomplete or self.is_complete(step))
        own = self._global_steps.get(mode, {})
        return sorted(step for step, home in own.items() if incomplete or self._is_complete_in(mode, step, home))

    def _is_complete_in(self, mode: ModeKeys, step: int, home: int) -> bool:
        others = self._elsewhere.get((mode, step), {}).values()
        return self.is_complete(max([home, *(file.step for file in others)]))

    def is_complete(self, step: int) -> bool:
        """Tell whether nothing can be added any more to a global step that was saved."""
        return self.ended or step <= self.last_complete_step

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it was not saved. A global step stays as it is."""
        return mode_step if mode is ModeKeys.GLOBAL else self._global_steps.get(mode, {}).get(mode_step)

    def mode_step(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return a global step's mode and number within it; None when it was not saved."""
        return self._mode_steps.get(step)

    def state(self, step: int, mode: ModeKeys) -> StepState:
        """Tell whether a step is there, can still come, or will not come any more."""
        saved = self.steps(mode, incomplete=True)
        position = bisect_left(saved, step)
        if position == len(saved):
            return StepState.UNAVAILABLE if self.ended else StepState.NOT_YET_AVAILABLE
        found = saved[position]
        home = self.global_step(mode, found)
        if home is None or not self._is_complete_in(mode, found, home):
            return StepState.NOT_YET_AVAILABLE
        return StepState.AVAILABLE if saved[position] == step else StepState.UNAVAILABLE


_REDUCTION = re.compile(rf"{REDUCTION_PREFIX}(abs_)?({'|'.join((*OPS, HISTOGRAM))})/(.+)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Contents:
    """The tensors of a step, and for those with reductions the stored name of each (op, on absolute values)."""

    names: frozenset[str]
    reductions: dict[str, dict[Op, str]]


class Catalogue:
    """Tells the contents of payloads; computed once for all that have the same tensors."""

    def __init__(self) -> None:
        self._known: dict[tuple[Names, int], tuple[Payload, Contents]] = {}

    def contents(self, payload: Payload) -> Contents:
        """Return what a payload holds."""
        key = (payload.tensors, id(payload.shapes))
        known = self._known.get(key)
        if known is None:
            # The payload is kept, so that its shapes' id stays its own.
            known = self._known[key] = (payload, _contents(payload))
        return known[1]


def parse_reduction(stored_name: str) -> tuple[str, Op] | None:
    """Split a reduction's stored name into the tensor's name and (op, on absolute values); None for a tensor."""
    match = _REDUCTION.fullmatch(stored_name)
    return (match[3], (match[2], match[1] is not None)) if match else None


def _contents(payload: Payload) -> Contents:
    names = set(payload.shapes)
    parsed = {}
    for name in payload.tensors.names:
        reduction = parse_reduction(name)
        if reduction is None:
            names.add(name)
        else:
            parsed[name] = reduction
    # Stored names of reductions have lost every ":<digits>": the tensor may stand beside them under its own name.
    own_names = {without_output_numbers(name): name for name in names}
    reductions: dict[str, dict[Op, str]] = {}
    for stored, (base, op) in parsed.items():
        reductions.setdefault(own_names.get(base, base), {})[op] = stored
    return Contents(frozenset(names | reductions.keys()), reductions)


def flat(regex: str | Iterable[Any]) -> list[str]:
    """The regular expressions of one, or of lists of them in lists."""
    return [regex] if isinstance(regex, str) else [pattern for part in regex for pattern in flat(part)]
