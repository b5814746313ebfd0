"""One step of one worker as a rule sees it: names, and values that are read when they are asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.statistics import compute
from smd_agent.compare.common_values import Side
from smd_agent.core.patterns import name_pattern
from smd_agent.core.reduction_config import CHANNEL_SHARES, OPS
from smd_agent.core.reductions import reduce_rows
from smd_agent.errors import SMDebugError
from smd_agent.formats.checksum import crc32c

if TYPE_CHECKING:
    from smd_agent.analysis.steps import Contents
    from smd_agent.analysis.trial import Trial
    from smd_agent.core.modes import ModeKeys
    from smd_agent.storage.index_files import StepIndex

Names = tuple[str, ...]
# About kinds of steps, of which a run has few.
_ANSWERS_KEPT = 2000
# The end of the names of biases and of their gradients; TensorFlow's may have an output's number.
_BIAS = re.compile(r"(?:^|[./_])bias(?:Grad)?(?::\d+)?$")


class OutOfTime(Exception):
    """There is no time to read further values."""


class Limits(NamedTuple):
    """The bounds of what may be read of a run.

    largest: bytes of a value; larger ones are passed over.
    in_time: tells whether there is time for one more.
    """

    largest: int
    in_time: Callable[[], bool]

    def check(self) -> None:
        """Go on as long as there is time.

        Raises:
            OutOfTime: there is none left.
        """
        if not self.in_time():
            raise OutOfTime


# Names of tensors, and a row with the elements of each.
Smalls = list[tuple[list[str], "npt.NDArray[Any]"]]


class Column(NamedTuple):
    """A number of some tensors at one step: names, and float64 values in the same order."""

    names: Names
    values: npt.NDArray[np.float64]

    def get(self, name: str) -> float | None:
        """Return the number of one tensor; None where it is not known."""
        return float(self.values[self.names.index(name)]) if name in self.names else None

    def items(self) -> Iterable[tuple[str, float]]:
        """Return names and numbers."""
        return zip(self.names, self.values.tolist(), strict=True)


@dataclass(frozen=True)
class Choice:
    """The tensors that are meant: members of the collections, and those in whose names a pattern is found.

    With neither, all of them.
    """

    collections: Names = ()
    patterns: Names = ()


@dataclass(frozen=True)
class Tensors:
    """A part of the tensors of a run: part ``number`` of ``count``, which have about as many each."""

    number: int = 0
    count: int = 1

    def has(self, name: str) -> bool:
        """Tell whether a tensor is in it; every process says the same."""
        return self.count == 1 or crc32c(name.encode("utf-8", "surrogatepass")) % self.count == self.number


class RunView:
    """The view of what is the same at all steps: which names are in which collection, and where their numbers are.

    ``problems`` has a sentence for each value that could not be read, ``passed_over`` the names of those that are too
    large for the limits. Tensors that are not among ``tensors`` are as none.
    """

    def __init__(self, trial: Trial, limits: Limits | None = None, tensors: Tensors = Tensors()) -> None:
        self.trial = trial
        self.tensors = tensors
        self.problems: dict[str, None] = {}
        self.passed_over: set[str] = set()
        self._limits = limits
        self._known: dict[tuple[Contents, object], Any] = {}

    def chosen(self, contents: Contents, choice: Choice) -> Names:
        """Return the names of a step's tensors that are meant, sorted; the same object for steps that are alike."""
        chosen: Names = self.once(contents, choice, lambda: tuple(sorted(self._choose(contents, choice))))
        return chosen

    def sources(self, file: StepIndex, contents: Contents, names: Names, statistic: str) -> Sources:
        """Return where a statistic of tensors is found; the same object for steps that are alike."""
        found: Sources = self.once(contents, (names, statistic), lambda: _sources(file, contents, names, statistic))
        return found

    def once(self, contents: Contents, question: object, answer: Callable[[], Any]) -> Any:
        """Return the answer to a question about steps with the same tensors, which is asked only once."""
        key = (contents, question)
        if key not in self._known:
            if len(self._known) >= _ANSWERS_KEPT:
                self._known.clear()
            self._known[key] = answer()
        return self._known[key]

    def _choose(self, contents: Contents, choice: Choice) -> Iterable[str]:
        return filter(self._chooser(choice), filter(self.tensors.has, contents.names))

    def may_read(self, name: str, size: int) -> bool:
        """Tell whether a value of so many bytes may be read.

        Raises:
            OutOfTime: no value may be read any more.
        """
        self.check_time()
        if self._limits is None or size <= self._limits.largest:
            return True
        self.passed_over.add(name)
        return False

    def check_time(self) -> None:
        """Go on as long as there is time.

        Raises:
            OutOfTime: there is none left.
        """
        if self._limits is not None:
            self._limits.check()

    def _chooser(self, choice: Choice) -> Callable[[str], bool]:
        if not choice.collections and not choice.patterns:
            return lambda name: True
        known = self.trial.collections()
        members = [known[name] for name in choice.collections if name in known]
        patterns = [name_pattern(pattern) for pattern in choice.patterns]
        return lambda name: any(one.matches(name) for one in members) or any(one.found_in(name) for one in patterns)


class Sources(NamedTuple):
    """Tensors of which a number is stored, under which name, and those that are saved whole."""

    names: Names
    places: Names
    whole: Names


def _sources(file: StepIndex, contents: Contents, names: Names, statistic: str) -> Sources:
    is_whole = file.index.payload.tensors.positions.__contains__
    if not statistic:
        own = names if all(map(is_whole, names)) else tuple(filter(is_whole, names))
        return Sources(own, own, ())
    op = (statistic.removeprefix("abs_"), statistic.startswith("abs_"))
    stored = {name: place for name in names if (place := contents.reductions.get(name, {}).get(op))}
    # Values do not tell where their channels are.
    can_compute = statistic not in CHANNEL_SHARES
    rest = tuple(name for name in names if can_compute and name not in stored and is_whole(name))
    return Sources(names if len(stored) == len(names) else tuple(stored), tuple(stored.values()), rest)


def _places(names: Names, chosen: Names) -> npt.NDArray[np.int64] | None:
    """Return where the chosen ones stand among the names; None unless all of them do."""
    known = {name: place for place, name in enumerate(names)}
    places = [known[name] for name in chosen if name in known]
    return np.array(places, np.int64) if len(places) == len(chosen) else None


class Place(NamedTuple):
    """A step of a worker.

    step: as the mode counts it.
    global_step: as it is counted over all modes.
    mode: of the step.
    worker: who saved it.
    """

    step: int
    global_step: int
    mode: ModeKeys
    worker: str


class StepView:
    """One step of one worker, whose ``place`` it is; ``step``, ``mode`` and ``worker`` are those of the place."""

    def __init__(self, run: RunView, file: StepIndex) -> None:
        self.place = Place(file.index.mode_step, file.step, file.index.mode, file.worker)
        self.step, _, self.mode, self.worker = self.place
        self._run = run
        self._file = file
        self._contents = run.trial.contents(file)
        self._columns: dict[tuple[Names, str], Column] = {}
        self._values: dict[str, npt.NDArray[Any] | None] = {}
        self._smalls: dict[Names, Smalls] = {}

    def names(self, *collections: str, patterns: Names = ()) -> Names:
        """Return the sorted names of the tensors of the step; where something is named, of those alone."""
        return self._run.chosen(self._contents, Choice(collections, patterns))

    def without(self, names: Names, others: Names) -> Names:
        """Return the names that are not among the others; the same object for steps that are alike."""
        left: Names = self._run.once(
            self._contents, (names, others, "without"), lambda: tuple(name for name in names if name not in {*others})
        )
        return left

    def can_know(self, statistic: str, names: Names) -> bool:
        """Tell whether a statistic of any of these tensors is stored, or can be computed."""
        sources = self._run.sources(self._file, self._contents, names, statistic)
        return bool(sources.names or sources.whole)

    @property
    def has_read(self) -> set[tuple[str, str]]:
        """The names asked for so far: tensors, each with a statistic, which is empty where it is the tensor itself."""
        numbers = {(name, statistic) for (_, statistic), found in self._columns.items() for name in found.names}
        return numbers | {(name, "") for name in self._values}

    def column(self, statistic: str, names: Names) -> Column:
        """Return a statistic of tensors, as far as it can be known: stored, or computed where they are saved whole.

        Args:
            statistic: such as ``mean``, ``abs_mean``, ``l2``, ``nan_count``.
            names: as `names` returns them.
        """
        key = (names, statistic)
        if key not in self._columns:
            self._columns[key] = self._part_of_known(statistic, names) or self._column(statistic, names)
        return self._columns[key]

    def _part_of_known(self, statistic: str, names: Names) -> Column | None:
        """Return a column out of one that has more tensors, if there is one."""
        for (others, other), column in self._columns.items():
            if other == statistic and column.names is others and len(others) > len(names):
                places = self._run.once(self._contents, (others, names, "places"), partial(_places, others, names))
                if places is not None:
                    return Column(names, column.values[places])
        return None

    def numbers(self, names: Names) -> Column:
        """Return the values of tensors of one element, such as losses; those that are saved whole and are numbers."""
        return self.column("", names)

    def single(self, name: str) -> Any:
        """Return the element of a tensor that has one, such as a text; None of others."""
        value = self.value(name)
        return value.reshape(-1)[0] if value is not None and value.size == 1 else None

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """Return a whole tensor; None where it was not saved whole, or cannot be read.

        Raises:
            OutOfTime: there is no time for it.
        """
        if name not in self._values:
            location = self._file.index.payload.location(name)
            may_read = location is not None and self._run.may_read(name, location[1])
            self._values[name] = None
            if may_read:
                try:
                    self._values[name] = self._run.trial.read(self._file, name).value
                except SMDebugError as error:
                    self._run.problems[str(error)] = None
        return self._values[name]

    def size(self, name: str) -> int | None:
        """Return how many elements a tensor has; None where its shape is not known."""
        shape = self.shape(name)
        return None if shape is None else math.prod(shape)

    def dimensions(self, name: str) -> int | None:
        """Return how many dimensions a tensor has; None where its shape is not known."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def is_matrix(self, name: str) -> bool:
        """Tell whether a parameter, or its gradient, has more than one dimension and is no bias, by shape or by name.

        Biases of Keras's attention have two dimensions; that of its keys has no gradient but rounding.
        """
        dimensions = self.dimensions(name)
        is_bias = _BIAS.search(name) is not None
        return not is_bias and (dimensions is None or dimensions > 1)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of a tensor; None where they are not known."""
        form = self._run.trial.form(self._file, name)
        return None if form is None else tuple(form.shape)

    def dtype(self, name: str) -> str:
        """Return the name of a tensor's dtype, such as ``float32``; empty where it is not known."""
        form = self._run.trial.form(self._file, name)
        return "" if form is None else form.dtype

    def saved_at(self) -> float | None:
        """Return when the step was saved, in seconds since the epoch; None where that cannot be read."""
        payload = self._file.index.payload
        if not payload.tensors.names:
            return None
        smallest = payload.tensors.names[min(range(len(payload.lengths)), key=payload.lengths.__getitem__)]
        try:
            return float(self._run.trial.read(self._file, smallest).wall_time)
        except SMDebugError as error:
            self._run.problems[str(error)] = None
            return None

    @property
    def side(self) -> Side:
        """The step as one of two that are compared."""
        return Side(self._run.trial, self._file)

    def cannot_read(self, error: SMDebugError) -> None:
        """Note that a value cannot be read."""
        self._run.problems[str(error)] = None

    def run_has_ended(self) -> bool:
        """Tell whether the run says that it has ended."""
        return self._run.trial.loaded_all_steps

    def _column(self, statistic: str, names: Names) -> Column:
        sources = self._run.sources(self._file, self._contents, names, statistic)
        values, known = self._run.trial.column(self._file, sources.places)
        if known.all() and not sources.whole:
            return Column(sources.names, values)
        found = {
            name: value for name, value, is_known in zip(sources.names, values.tolist(), known, strict=True) if is_known
        }
        left = tuple(name for name in sources.names if name not in found)
        # What has several elements is no number.
        rows = self._small(left) if left and not statistic else []
        several = {name for small, values in rows if values.shape[1] > 1 for name in small}
        for name, place in zip(sources.names, sources.places, strict=True):
            if name not in found and name not in several:
                found.update(self._single(name) if not statistic else self._stored(name, place))
        if sources.whole:
            found.update(self._computed(sources.whole, statistic))
        if len(found) == len(names):
            return Column(names, np.array([found[name] for name in names], np.float64))
        return Column(tuple(found), np.array([*found.values()], np.float64))

    def _single(self, name: str) -> dict[str, float]:
        value = self.value(name)
        is_number = value is not None and value.size == 1 and value.dtype.kind in "fiub"
        return {name: float(value.reshape(-1)[0])} if value is not None and is_number else {}

    def _stored(self, name: str, place: str) -> dict[str, float]:
        try:
            return {name: float(self._run.trial.number(self._file, place))}
        except SMDebugError as error:
            self._run.problems[str(error)] = None
            return {}

    def _small(self, names: Names) -> Smalls:
        """Return the elements of the small tensors of numbers among these, which are saved whole."""
        if names not in self._smalls:
            self._run.check_time()
            found = self._run.trial.rows(self._file, names)
            self._smalls[names] = [([names[place] for place in places.tolist()], rows) for places, rows in found]
        return self._smalls[names]

    def _computed(self, names: Names, statistic: str) -> dict[str, float]:
        plain = statistic.removeprefix("abs_")
        if plain not in OPS:
            return {}
        found: dict[str, float] = {}
        for small, rows in self._small(names):
            if small:
                values = rows if plain == statistic else np.abs(rows)
                found.update(zip(small, reduce_rows(values, [(plain, False)])[:, 0].tolist(), strict=True))
        for name in names:
            if name not in found:
                found.update(self._compute(name, statistic))
        return found

    def _compute(self, name: str, statistic: str) -> dict[str, float]:
        value, plain = self.value(name), statistic.removeprefix("abs_")
        if value is None or value.dtype.kind not in "fiub":
            return {}
        computed = compute(np.abs(value) if plain != statistic else value, [plain])
        return {name: computed[plain]} if plain in computed else {}
