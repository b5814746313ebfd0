"""Losses of evaluations beside those of the training before them, and what rules about both are made on."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import Generic, NamedTuple, TypeVar

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import BuiltInRule, Need, Split
from smd_agent.rules.step_view import Names, Place, StepView

T = TypeVar("T")


class Thinned(Generic[T]):
    """A list that keeps every item, then every second one, then every fourth, so that it never has more than ``most``.

    Attributes:
        count: how many items came.
    """

    def __init__(self, most: int = 256) -> None:
        self.count = 0
        self._most = most
        self._every = 1
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Take in the next item."""
        if self.count % self._every == 0:
            self._items.append(item)
        self.count += 1
        if len(self._items) > self._most:
            del self._items[1::2]
            self._every *= 2

    @classmethod
    def of(cls, count: int, item: Callable[[int], T], most: int = 256) -> Thinned[T]:
        """Return a list to which so many items have come; ``item`` gives those that are kept, by their places."""
        thinned = cls(most)
        thinned.count = count
        while -(-count // thinned._every) > most:
            thinned._every *= 2
        thinned._items = [item(place) for place in range(0, count, thinned._every)]
        return thinned

    def items(self) -> list[T]:
        """Return those that are kept, in their order."""
        return [*self._items]


# XGBoost calls a loss by the evaluation set and the metric.
_OF_SET = re.compile(r"([^-/]+)-(.+)")
_OF_KERAS = "val_"
_OF_SETS = f"{DATA_FACTS}evaluation/"
# Times the usual change from one evaluation to the next.
_STANDS_OUT = 6.0


class Loss(NamedTuple):
    """A loss of one step.

    name: of the tensor.
    key: what training and validation losses that belong together have in common.
    value: finite.
    is_validation: whether it is of an evaluation.
    """

    name: str
    key: str
    value: float
    is_validation: bool


class Evaluation(NamedTuple):
    """One evaluation: its first step, its mean loss, and the mean loss of the training since the one before."""

    place: Place
    validation: float
    training: float


def losses_of(step: StepView, names: Names, sets: Mapping[str, bool]) -> list[Loss]:
    """Return the finite losses of a step, those of the training first.

    A loss is one of an evaluation in mode EVAL, or if it is called ``val_...``. Of evaluation sets whose losses have
    names such as ``test-logloss``, one with ``train`` in its name is of the training, unless ``sets`` knows better;
    without such a one, nothing is known of any.

    Args:
        step: the step.
        names: of the losses.
        sets: by the name of an evaluation set, whether it has the rows that are trained.
    """
    found = []
    for name, value in step.numbers(names).items():
        if math.isfinite(value) and step.mode is not ModeKeys.PREDICT:
            key, is_validation = _role(name, step.mode, sets)
            found.append(Loss(name, key, value, is_validation))
    return sorted(found, key=lambda loss: loss.is_validation)


def of_training(names: Names, mode: ModeKeys) -> Names:
    """Return those losses that are of the training; all of them where none is known to be."""
    return tuple(name for name in names if not _role(name, mode, {})[1]) or names


def set_of(name: str, mode: ModeKeys) -> str | None:
    """Return the evaluation set of a boosted training that a loss is of; None of other losses."""
    of_set = _OF_SET.fullmatch(name) if mode is ModeKeys.GLOBAL else None
    return None if of_set is None else of_set[1]


def _role(name: str, mode: ModeKeys, sets: Mapping[str, bool]) -> tuple[str, bool]:
    of_set = set_of(name, mode)
    if of_set is not None:
        return name[len(of_set) + 1 :], not sets.get(of_set, "train" in of_set.lower())
    if name.startswith(_OF_KERAS):
        return name.removeprefix(_OF_KERAS), True
    return name, mode is ModeKeys.EVAL


class _Phase:
    """The losses of a training or an evaluation between two changes from one to the other."""

    def __init__(self, place: Place, number: int = 0) -> None:
        self.place = place
        self.number = number
        self.ended = False
        self._total, self._count = 0.0, 0

    def add(self, value: float) -> None:
        self._total += value
        self._count += 1

    @property
    def mean(self) -> float:
        return self._total / self._count


class Evaluations:
    """The evaluations of a run, for each validation loss."""

    def __init__(self) -> None:
        self._trainings: dict[str, _Phase] = {}
        self._open: dict[str, tuple[_Phase, _Phase]] = {}
        self._closed: dict[str, Thinned[Evaluation]] = {}

    def take(self, step: StepView, losses: Sequence[Loss]) -> Iterator[tuple[str, Evaluation]]:
        """Take in the losses of a step; yield each evaluation that it belongs to, as far as it goes, with its loss."""
        for loss in losses:
            if not loss.is_validation:
                self._train(step.place, loss)
            elif loss.key in self._trainings:
                yield loss.name, self._evaluate(step.place, loss)

    def courses(self) -> Mapping[str, Sequence[Evaluation]]:
        """Return the evaluations in order, by the name of the loss; of very many, evenly so many."""
        found = {
            name: [
                *(self._closed[name].items() if name in self._closed else ()),
                Evaluation(own.place, own.mean, training.mean),
            ]
            for name, (own, training) in self._open.items()
        }
        # Keras has the mean over an evaluation beside the losses of its batches.
        own = {name: course for name, course in found.items() if f"{_OF_KERAS}{name}" not in found}
        return {name: _of_last_training(course) for name, course in own.items()}

    def _train(self, place: Place, loss: Loss) -> None:
        phase = self._trainings.get(loss.key)
        if phase is None or phase.ended:
            phase = self._trainings[loss.key] = _Phase(place, 0 if phase is None else phase.number + 1)
        phase.add(loss.value)

    def _evaluate(self, place: Place, loss: Loss) -> Evaluation:
        training = self._trainings[loss.key]
        training.ended = True
        own, before = self._open.get(loss.name, (None, training))
        if own is None or before.number != training.number:
            if own is not None:
                done = Evaluation(own.place, own.mean, before.mean)
                self._closed.setdefault(loss.name, Thinned()).add(done)
            own = _Phase(place)
            self._open[loss.name] = own, training
        own.add(loss.value)
        return Evaluation(own.place, own.mean, training.mean)


def _of_last_training(course: Sequence[Evaluation]) -> Sequence[Evaluation]:
    """Return the evaluations since the training loss jumped back up half of the way that it had fallen.

    Another training has begun there, as of another fold or of another model in the same run.
    """
    losses = [one.training for one in course]
    jumps = [later - earlier for earlier, later in itertools.pairwise(losses)]
    usual = median(map(abs, jumps)) if jumps else 0.0
    begin = 0
    for place, jump in enumerate(jumps, 1):
        half = (losses[begin] + min(losses[begin:place])) / 2
        if jump > _STANDS_OUT * usual and losses[place] >= half:
            begin = place
    return course[begin:]


class OfEvaluations(BuiltInRule):
    """A rule about losses of training and of validation; a run without evaluations is not for it.

    ``fewest_evaluations`` are needed to judge.
    """

    needs: tuple[Need, ...] = (Need((CollectionKeys.LOSSES,)),)
    split = Split.WORKER
    fewest_evaluations: int = 1

    def start(self) -> None:
        """Begin with nothing seen."""
        self.evaluations = Evaluations()
        self._sets: dict[str, dict[str, float]] = {}

    def losses(self, step: StepView, names: Names) -> list[Loss]:
        """Return the finite losses of a step, and take note of what is known of its evaluation sets."""
        facts = step.names(patterns=(f"^{_OF_SETS}",))
        if facts:
            # Those of another training, which has begun.
            self._sets = {}
            for name, number in step.numbers(facts).items():
                of_set, _, fact = name.removeprefix(_OF_SETS).rpartition("/")
                self._sets.setdefault(of_set, {})[fact] = number
        sets = {name: facts["training_rows"] == 1 for name, facts in self._sets.items() if "training_rows" in facts}
        return losses_of(step, names, sets)

    def stops_early(self, loss: str, mode: ModeKeys) -> bool:
        """Tell whether early stopping goes by the evaluation set that a loss is of."""
        return "stopping_rounds" in self._sets.get(set_of(loss, mode) or "", {})

    @property
    def has_judged(self) -> bool:
        """True if there were enough evaluations."""
        courses = self.evaluations.courses().values()
        return bool(self._findings) or any(len(course) >= self.fewest_evaluations for course in courses)

    @property
    def progress(self) -> tuple[int, int]:
        """The way that it has come towards judging."""
        most = max(map(len, self.evaluations.courses().values()), default=0)
        return super().progress[0], most

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether there are evaluations, if there are losses."""
        return super().fits(collections) and (not self._steps_seen or self.has_judged)
