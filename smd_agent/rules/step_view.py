"""One step of one worker as a rule sees it: names, and values that are read when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smd_agent.analysis.statistics import compute
from smd_agent.compare.reading import Side
from smd_agent.core.patterns import name_pattern
from smd_agent.core.reduction_config import CHANNEL_SHARES, OPS
from smd_agent.errors import SMDebugError

if TYPE_CHECKING:
    import numpy.typing as npt

    from smd_agent.analysis.names import Contents
    from smd_agent.analysis.trial import Trial
    from smd_agent.core.modes import ModeKeys
    from smd_agent.storage.reader import StepIndex

Names = tuple[str, ...]
# About kinds of steps, of which a run has few.
_ANSWERS_KEPT = 2000


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
    """Which tensors are meant: members of the collections, and those in whose names a pattern is found.

    With neither, all of them.
    """

    collections: Names = ()
    patterns: Names = ()


class RunView:
    """What is the same at all steps of a run: which names are in which collection, and where their numbers are.

    ``problems`` has a sentence for each value that could not be read.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.problems: dict[str, None] = {}
        self._known: dict[tuple[Contents, object], Any] = {}

    def chosen(self, contents: Contents, choice: Choice) -> Names:
        """Return the names of a step's tensors that are meant, sorted; the same object for steps that are alike."""
        chosen: Names = self.once(
            contents, choice, lambda: tuple(sorted(filter(self._chooser(choice), contents.names)))
        )
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
        own = tuple(filter(is_whole, names))
        return Sources(own, own, ())
    op = (statistic.removeprefix("abs_"), statistic.startswith("abs_"))
    stored = {name: place for name in names if (place := contents.reductions.get(name, {}).get(op))}
    # Values do not tell where their channels are.
    can_compute = statistic not in CHANNEL_SHARES
    rest = tuple(name for name in names if can_compute and name not in stored and is_whole(name))
    return Sources(tuple(stored), tuple(stored.values()), rest)


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
        self._numbers: dict[tuple[str, str], dict[str, float]] = {}

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

    def column(self, statistic: str, names: Names) -> Column:
        """Return a statistic of tensors, as far as it can be known: stored, or computed where they are saved whole.

        Args:
            statistic: such as ``mean``, ``abs_mean``, ``l2``, ``nan_count``.
            names: as `names` returns them.
        """
        key = (names, statistic)
        if key not in self._columns:
            self._columns[key] = self._column(statistic, names)
        return self._columns[key]

    def numbers(self, names: Names) -> Column:
        """Return the values of tensors of one element, such as losses; those that are saved whole and are numbers."""
        return self.column("", names)

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """Return a whole tensor; None where it was not saved whole, or cannot be read."""
        if name not in self._values:
            self._values[name] = None
            if self._file.index.payload.location(name) is not None:
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

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of a tensor; None where they are not known."""
        form = self._run.trial.form(self._file, name)
        return None if form is None else tuple(form.shape)

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
        for name, place in zip(sources.names, sources.places, strict=True):
            if name not in found:
                found.update(self._single(name) if not statistic else self._stored(name, place))
        for name in sources.whole:
            found.update(self._computed(name, statistic))
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

    def _computed(self, name: str, statistic: str) -> dict[str, float]:
        key = (name, statistic)
        if key not in self._numbers:
            self._numbers[key] = self._compute(name, statistic)
        return self._numbers[key]

    def _compute(self, name: str, statistic: str) -> dict[str, float]:
        value, plain = self.value(name), statistic.removeprefix("abs_")
        if value is None or plain not in OPS or value.dtype.kind not in "fiub":
            return {}
        computed = compute(np.abs(value) if plain != statistic else value, [plain])
        return {name: computed[plain]} if plain in computed else {}
