"""Norms of the gradients that updates use, and of what updates change, in the steps that the budget allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

import torch

from smd_agent.core.budget import Budget
from smd_agent.formats.series import ABSENT, PARAMETERS_TABLE
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.series_rows import At
from smd_agent.pytorch.device import free_memory
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import apart, without_gradients
from smd_agent.pytorch.plain_access import optimized
from smd_agent.pytorch.series.broken_gradients import BrokenGradients
from smd_agent.pytorch.series.clip_norms import ClipNorms
from smd_agent.pytorch.series.late_rows import LateRows, Number, Part
from smd_agent.pytorch.series.lengths import lengths_of, measured_parts, together
from smd_agent.pytorch.series.named_parameters import NamedParameters
from smd_agent.pytorch.series.roots import number_of

MOST_COPIED = 128 << 20
"""Bytes of parameters that are copied to see what an update changes."""


# Nothing is added to what is not taken.
_NOT_TAKEN: tuple[bool, Number, list[Part], set[int]] = (False, ABSENT, [], set())


class _Taken:
    """One kind of norms in the step that is under way: those of gradients, or those of updates.

    Args:
        share: of the run's time that they may take.
        place: of the kind, among the columns of a parameter.

    Attributes:
        now: whether this step takes them.
        total: of all together; ``ABSENT`` where they are not taken.
        each: of the parameters, in their columns.
    """

    def __init__(self, share: float, place: int) -> None:
        self._budget = Budget(share)
        self._place = place
        self._last = _NOT_TAKEN
        self.begin_step()

    def begin_step(self) -> None:
        """The next step takes them if the budget allows it."""
        self.now = self._budget.takes()
        self.total: Number = ABSENT
        self.each: list[Part] = []
        self._seen: set[int] = set()
        self._seconds = 0.0

    def go_on(self) -> None:
        """The step that has ended last goes on."""
        self.now, self.total, self.each, self._seen = self._last

    def is_first(self, parameters: list[torch.Tensor]) -> bool:
        """True if this step takes them, and has not yet: of an optimizer, and one inside of it, the first update."""
        if not self.now or not parameters or id(parameters[0]) in self._seen:
            return False
        self._seen.add(id(parameters[0]))
        return True

    def add(self, lengths: list[Part], numbers: list[int]) -> None:
        """Take lengths of parameters with these numbers."""
        self.total = together(lengths, self.total)
        for places, values in lengths:
            columns = [2 * number + self._place if (number := numbers[place]) >= 0 else -1 for place in places]
            self.each.append(Part(columns, values))

    def spent(self, begun: float) -> None:
        """Add the time since then to what they have taken."""
        self._seconds += perf_counter() - begun

    def end_step(self, seconds: float) -> None:
        """The step has taken so long; ``ABSENT`` if nobody knows."""
        budget = self._budget
        if not (self.now or self._seconds) and self.total is ABSENT and seconds is not ABSENT:
            # As most steps are.
            self._last = _NOT_TAKEN
            budget.step_took(seconds)
            self.now = budget.takes()
            return
        if seconds is not ABSENT:
            budget.step_took(max(seconds - self._seconds, 0.0))
        if self.now:
            budget.took(self._seconds)
        self._last = self.now, self.total, self.each, self._seen
        self.begin_step()


class Norms:
    """The norms of one step after the other.

    Args:
        models: gives those that are known.
        budget: part of the run's time that the series may take.

    Attributes:
        gradients, updates: those of the step that is under way.
        clipped: what the program has measured itself.
        broken: tells of gradients that are not finite.
    """

    def __init__(self, models: Callable[[], Iterable[TrackedModule]], budget: float) -> None:
        self._parameters = NamedParameters(models)
        self.gradients, self.updates = _Taken(0.3 * budget, 0), _Taken(0.2 * budget, 1)
        self.clipped = ClipNorms()
        self.broken = BrokenGradients(0.1 * budget)
        # How many gradients an optimizer's update has used when they were measured last, by its id.
        self._counts: dict[int, int] = {}
        # By id of the optimizer whose update is under way.
        self._copies: dict[int, list[torch.Tensor | None]] = {}

    def go_on(self) -> None:
        """The step that has ended last goes on."""
        self.gradients.go_on()
        self.updates.go_on()

    def before_update(self, optimizer: Any) -> None:
        """An optimizer is about to update its parameters: they are copied."""
        if not self.updates.now:
            return
        begun = perf_counter()
        if self.updates.is_first(parameters := optimized(optimizer)):
            self._copies[id(optimizer)] = _copied(parameters)
            self.updates.spent(begun)

    def uses_gradients(self, optimizer: Any) -> None:
        """An optimizer uses the gradients that are there now; of those that the program clips, what they were."""
        clipped = self.clipped
        if not (self.gradients.now or clipped.count):
            return
        begun = perf_counter()
        if self.gradients.now and self.gradients.is_first(parameters := optimized(optimizer)):
            gradients = measured_parts(parameters, _gradient)
            self._counts[id(optimizer)] = sum(one is not None for one in gradients)
            found = clipped.of(gradients) if clipped.count else None
            if found is None:
                found = _unscaled(lengths_of(gradients), optimizer)
            self.gradients.add(found, self._parameters.numbers_of(parameters))
            self.gradients.spent(begun)
        elif clipped.count and self._counts.get(id(optimizer)) == clipped.count:
            self.gradients.total = together([], self.gradients.total, clipped.total)
        if clipped.count:
            clipped.clear()

    def after_update(self, optimizer: Any) -> None:
        """An optimizer has updated its parameters."""
        if self._copies and (copies := self._copies.pop(id(optimizer), None)):
            begun = perf_counter()
            parameters = optimized(optimizer)
            if len(copies) == len(parameters):
                self.updates.add(_changes(parameters, copies), self._parameters.numbers_of(parameters))
            self.updates.spent(begun)

    def end_step(self, at: At, late: LateRows, seconds: float) -> None:
        """Write the row of a step that has ended, and has taken so long."""
        if self.gradients.each or self.updates.each:
            parts = self.gradients.each + self.updates.each
            begun = perf_counter()
            late.take_parts(PARAMETERS_TABLE, at, self._parameters.columns, parts)
            self.gradients.spent(begun)
        self.gradients.end_step(seconds)
        self.updates.end_step(seconds)
        if self._copies:
            self._copies.clear()


def _gradient(parameter: torch.Tensor) -> torch.Tensor | None:
    return parameter.grad


def _itself(parameter: torch.Tensor) -> torch.Tensor:
    return parameter


@apart
@without_gradients
def _unscaled(lengths: list[Part], optimizer: Any) -> list[Part]:
    """Lengths of gradients that an optimizer divides by a scale as it uses them."""
    scale = attribute(optimizer, "grad_scale")
    if scale is None:
        return lengths
    by = number_of(scale)
    return [
        Part(places, values / by if is_a(values, torch.Tensor) else [value / float(by) for value in values])
        for places, values in lengths
    ]


@apart
@without_gradients
def _copied(parameters: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Copies of those that have a gradient, which are updated; none where that takes much memory."""
    trained = [parameter if parameter.grad is not None else None for parameter in parameters]
    parts = measured_parts(trained, _itself)
    sizes: dict[torch.device, int] = {}
    for part in parts:
        if part is not None:
            sizes[part.device] = sizes.get(part.device, 0) + part.numel() * part.element_size()
    if any(size > min(MOST_COPIED, free_memory.bytes_left(device) // 4) for device, size in sizes.items()):
        return []
    return [None if part is None else part.detach().clone() for part in parts]


@apart
@without_gradients
def _changes(parameters: list[torch.Tensor], copies: list[torch.Tensor | None]) -> list[Part]:
    """The lengths of the differences between parameters and what they were."""
    parts = measured_parts(parameters, _itself)
    moved: list[torch.Tensor | None] = [None] * len(copies)
    for place, (part, copy) in enumerate(zip(parts, copies, strict=True)):
        if part is not None and copy is not None and part.shape == copy.shape and part.dtype is copy.dtype:
            moved[place] = copy.sub_(part.detach())
    return lengths_of(moved)
