"""Courses of the tensors of a run, and what is unusual in one; of many, from as many steps as seconds allow."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from smd_agent.analysis.statistics import measure
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.checksum import crc32c

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import Measured, TensorSource
    from smd_agent.core.collection import Collection
    from smd_agent.storage.index_files import StepIndex

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
        """True if it is so at all later steps."""
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
        """The unusual thing about it: one of `FINDINGS`."""
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
        """The key that courses are ordered by, the most unusual first."""
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


# To look at a tensor takes as long as to read so many stored numbers, to read a small one so many more.
_TENSOR_AT_ALL = 5
_TENSOR_AS_NUMBERS = 20
# So many steps are looked at, whatever it takes.
_FEWEST = 5
_EVALUATIONS = (ModeKeys.EVAL, ModeKeys.PREDICT)
# What need not change, and what may have values that are not there.
_MAY_STAY = (
    CollectionKeys.INPUTS,
    CollectionKeys.LABELS,
    CollectionKeys.FEATURE_IMPORTANCE,
    CollectionKeys.AVERAGE_SHAP,
    CollectionKeys.FULL_SHAP,
)
_NOT_JUDGED = (
    CollectionKeys.TREES,
    CollectionKeys.HYPERPARAMETERS,
    CollectionKeys.OPTIMIZER,
    CollectionKeys.INPUT_DIGESTS,
    CollectionKeys.PARAMETERS,
    CollectionKeys.USAGE,
    CollectionKeys.DATA_FACTS,
)


@dataclass(frozen=True)
class Effort:
    """The most that is read: stored numbers, and bytes; larger tensors than ``largest`` bytes are not read."""

    numbers: int
    bytes: int
    largest: int | None = None


@dataclass(frozen=True)
class Overview:
    """The courses of some tensors by name and mode, and of how many steps which were looked at.

    ``problems`` says what could not be read, each sentence once; ``unread`` are tensors that were too large.
    """

    courses: list[Course]
    steps: int
    looked_at: int
    problems: list[str]
    unread: set[str]


def look_at(
    source: TensorSource,
    names: Sequence[str],
    collections: Mapping[str, Collection],
    mode: ModeKeys,
    steps: Sequence[int],
    effort: Effort,
    worker: str | None = None,
) -> Overview:
    """Read how tensors go over the steps.

    Args:
        source: the trial.
        names: of the tensors.
        collections: of the run.
        mode: how the steps are counted.
        steps: those that may be looked at, in order.
        effort: where they are more than this allows, some are left out, evenly; never the first and the last.
        worker: only what this worker saved.
    """
    kinds = [_members(collections, one) for one in ((CollectionKeys.LOSSES,), _MAY_STAY, _NOT_JUDGED)]
    some = _some(steps, _affordable(source, names, mode, steps, effort))
    courses: dict[tuple[str, ModeKeys], Course] = {}
    problems: dict[str, None] = {}
    unread: set[str] = set()
    for step in some:
        for file in _files(source, step, mode, worker):
            for measured in measure(source, file, names, largest=effort.largest):
                if measured.problem is not None:
                    problems[str(measured.problem)] = None
                name, key = measured.name, (measured.name, file.index.mode)
                if not measured.numbers:
                    location = file.index.payload.location(name)
                    unread |= (
                        {name} if location is not None and location[1] > (effort.largest or location[1]) else set()
                    )
                    continue
                if key not in courses:
                    is_loss, may_stay, not_judged = (any(one.matches(name) for one in kind) for kind in kinds)
                    # From one step of an evaluation to the next, nothing of the model changes.
                    may_stay |= key[1] in _EVALUATIONS and not is_loss
                    courses[key] = Course(*key, is_loss, may_stay, not_judged)
                courses[key].add(step, file.worker, measured)
    return Overview(list(courses.values()), len(steps), len(some), list(problems), unread)


def _members(collections: Mapping[str, Collection], names: Sequence[str]) -> list[Collection]:
    return [collections[name] for name in names if name in collections]


def _files(source: TensorSource, step: int, mode: ModeKeys, worker: str | None) -> Iterator[StepIndex]:
    for name, file in sorted(source.step_table.files(step, mode).items()):
        if worker in (None, name):
            yield file


def _affordable(
    source: TensorSource, names: Sequence[str], mode: ModeKeys, steps: Sequence[int], effort: Effort
) -> int:
    """Return how many of the steps can be read, by what the last one holds."""
    numbers = size = 1
    for file in _files(source, steps[-1], mode, None) if steps else ():
        contents, payload = source.contents(file), file.index.payload
        own = [name for name in names if name in contents.names]
        numbers += sum(_TENSOR_AT_ALL + len(contents.reductions.get(name, ())) for name in own)
        lengths = [location[1] for name in names if (location := payload.location(name)) is not None]
        read = [length for length in lengths if effort.largest is None or length <= effort.largest]
        numbers, size = numbers + _TENSOR_AS_NUMBERS * len(read), size + sum(read)
    return min(effort.numbers // numbers, effort.bytes // size)


def _some(steps: Sequence[int], most: int) -> list[int]:
    if len(steps) <= max(most, _FEWEST):
        return list(steps)
    most = max(most, _FEWEST)
    return [steps[number * (len(steps) - 1) // (most - 1)] for number in range(most)]
