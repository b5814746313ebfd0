"""The course of one tensor over the steps, and what is unusual about it."""

from __future__ import annotations

import functools
import math
import struct
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from smd_agent.formats.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smd_agent.analysis.statistics import Measured
    from smd_agent.core.modes import ModeKeys

# From the first to the last step; gradients of a training that goes well become small, too.
GROWS = 50.0
FADES = 1e-3
# From the middle of the first third of the steps to that of the last: what goes up and down does not grow.
_GROWS_ALL_ALONG = 4.0
_FADES_ALL_ALONG = 0.1
MANY_ZEROS = 0.9
# Of the middle of the first and of the last steps of a number such as the loss.
CHANGES = 0.05
_FEW = 3
_OVERFLOWING = ("prod", "sum", "l1", "variance")
_SIZES = ("l2", "std", "abs_mean", "mean", "max", "min")

NOT_FINITE, SAME, GROWING, FADING, ZEROS, RISING = "NaN/Inf", "Same", "Grows", "Fades", "Zeros", "Rises"
FINDINGS = (NOT_FINITE, SAME, GROWING, FADING, ZEROS, RISING)
"""What can be unusual about a tensor, the most unusual first."""


@dataclass
class Point:
    """A tensor at one step: a number for its size, how many elements are NaN, Inf and zero, and shares of its channels.

    What cannot be known is None, as is the size of text. ``digest`` is the same where the values are.
    """

    step: int
    size: float | None
    nans: float | None
    infs: float | None
    zero_share: float | None
    dead_share: float | None
    saturated_share: float | None
    digest: int
    finite: bool = True


@dataclass
class Course:
    """A tensor over some steps of one mode, in order.

    Attributes:
        name: of the tensor.
        mode: of the steps.
        of: what ``size`` of the points is: ``value`` of a tensor of one element, else a statistic such as ``l2``.
        is_loss: whether it should fall.
        may_stay: whether it may be the same at all steps, as labels may be.
        not_judged: whether nothing about it is unusual, as NaN among the numbers of a tree is not.
        points: those of the first worker; what others saved is looked at for NaN and Inf only.
    """

    name: str
    mode: ModeKeys
    is_loss: bool = False
    may_stay: bool = False
    not_judged: bool = False
    of: str = ""
    points: list[Point] = field(default_factory=list)
    _worker: str = ""

    def add(self, step: int, worker: str, measured: Measured) -> None:
        """Take in what one worker saved at a step."""
        numbers = measured.numbers
        self._worker = self._worker or worker
        finite = all_finite(numbers)
        if worker != self._worker and self.points and self.points[-1].step == step:
            self._join(self.points[-1], measured, finite)
            return
        of = _kind_of_size(measured)
        self.of = self.of or of
        size = numbers.get("mean" if of == "value" else of)
        counts = (numbers.get("nan_count"), numbers.get("inf_count"), numbers.get("zero_share"))
        shares = (numbers.get("dead_share"), numbers.get("saturated_share"))
        self.points.append(Point(step, size, *counts, *shares, _digest(measured), finite))

    @staticmethod
    def _join(point: Point, measured: Measured, finite: bool) -> None:
        point.finite &= finite
        point.nans = (point.nans or 0) + measured.numbers.get("nan_count", 0)
        point.infs = (point.infs or 0) + measured.numbers.get("inf_count", 0)

    @property
    def not_finite_from(self) -> int | None:
        """The first step at which not all elements are finite."""
        return next((point.step for point in self.points if not point.finite), None)

    @property
    def stays_not_finite(self) -> bool:
        """Whether it is so at all later steps."""
        first = self.not_finite_from
        return first is not None and not any(point.finite for point in self.points if point.step > first)

    @property
    def ratio(self) -> float | None:
        """The last size by the first one; None where that says nothing."""
        sizes = [point.size for point in self.points]
        if len(sizes) < _FEW or not sizes[0] or not sizes[-1] or not math.isfinite(ratio := sizes[-1] / sizes[0]):
            return None
        return ratio if ratio > 0 else None

    @functools.cached_property
    def finding(self) -> str | None:
        """What is unusual: one of `FINDINGS`."""
        if self.not_judged:
            return None
        if self.not_finite_from is not None:
            return NOT_FINITE
        if len(self.points) < _FEW or any(point.size is None for point in self.points):
            return None
        if not self.may_stay and len({point.digest for point in self.points}) == 1:
            return SAME
        if self.of == "value":
            return RISING if self.is_loss and self.trend == "rises" else None
        if self.ratio is not None and (self.ratio >= GROWS or self.ratio <= FADES):
            first, last = middles(self._sizes, 3)
            if last >= _GROWS_ALL_ALONG * first if self.ratio > 1 else last <= _FADES_ALL_ALONG * first:
                return GROWING if self.ratio > 1 else FADING
        shares = [point.zero_share for point in self.points if point.zero_share is not None]
        return ZEROS if shares and median(shares) >= MANY_ZEROS else None

    @property
    def trend(self) -> str:
        """Of a number: falls, rises or flat; empty for others, and where there are too few steps."""
        return trend_of(self._sizes) if self.of == "value" else ""

    @property
    def _sizes(self) -> list[float]:
        return [point.size for point in self.points if point.size is not None and math.isfinite(point.size)]

    @property
    def unusual(self) -> tuple[float, ...]:
        """What courses are ordered by, the most unusual first."""
        finding = self.finding
        if finding is None:
            return (len(FINDINGS), not self.is_loss)
        if finding == NOT_FINITE:
            return (FINDINGS.index(finding), not self.is_loss, self.not_finite_from or 0)
        strength = abs(math.log(self.ratio)) if finding in (GROWING, FADING) and self.ratio else 0.0
        return (FINDINGS.index(finding), not self.is_loss, -strength)


def middles(numbers: Sequence[float], parts: int) -> tuple[float, float]:
    """Return the medians of the first and the last of so many equal parts of some numbers."""
    part = max(len(numbers) // parts, 1)
    return median(numbers[:part]), median(numbers[-part:])


def trend_of(numbers: Sequence[float]) -> str:
    """Tell whether finite numbers, such as a loss over the steps, fall, rise or are flat; empty for too few."""
    if len(numbers) < _FEW:
        return ""
    first, last = middles(numbers, 5)
    change = (last - first) / max(abs(first), abs(last), 1e-300)
    return "falls" if change < -CHANGES else "rises" if change > CHANGES else "flat"


def all_finite(numbers: Mapping[str, float]) -> bool:
    """Tell from a tensor's statistics, by name, whether all of its elements are finite."""
    if "nan_count" in numbers and "inf_count" in numbers:
        return not numbers["nan_count"] and not numbers["inf_count"]
    # A product or a sum of finite elements can be too large for a float.
    told = (value for name, value in numbers.items() if name.removeprefix("abs_") not in _OVERFLOWING)
    return all(map(math.isfinite, told))


def _kind_of_size(measured: Measured) -> str:
    numbers = measured.numbers
    if measured.record is not None and measured.record.value.size == 1:
        return "value"
    one = {numbers.get("min"), numbers.get("max"), numbers.get("mean")}
    # All elements are alike, and their norm is that of one of them.
    if len(one) == 1 and None not in one and numbers.get("l2") == abs(numbers["mean"]) != 0:
        return "value"
    return next((name for name in _SIZES if name in numbers), "")


def _digest(measured: Measured) -> int:
    digest = 0
    for name in sorted(measured.numbers):
        digest = crc32c(struct.pack("<d", measured.numbers[name]), digest)
    return digest if measured.record is None else crc32c(measured.record.value.tobytes(), digest)
