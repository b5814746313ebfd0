"""ReplicasDiffer: workers that began with the same weights and do not keep them the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import CollectionKeys, ModeKeys, Names, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.workers import OfWorkers

_WEIGHTS = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
_STATISTICS = ("abs_mean", "mean", "std", "l2")

_OF_ALL = (
    "Nothing averages the gradients of the workers: the model is not wrapped, its inner module is called instead of the"
    " wrapper, or gradients are not reduced",
    "Call the model that DistributedDataParallel returns; a training that averages weights now and then does this too",
)
_OF_SOME = (
    "Other parameters of the model are kept the same and this one is not: it was made after the model was wrapped, is"
    " used outside of the wrapper's forward, or is left out where gradients are reduced",
    "Wrap the model when it is complete, and call it by its wrapper only",
)


class _Numbers(NamedTuple):
    """The numbers of a worker's weights.

    names: of the weights.
    values: float64, of shape (statistics, names), NaN where a number is not known.
    """

    names: Names
    values: npt.NDArray[np.float64]


@dataclass
class _Model:
    """A model that several workers have.

    Attributes:
        step: the first one at which workers were compared.
        are_replicas: whether all of its weights were the same there.
        first: the numbers of its weights there, by their names.
    """

    step: int
    are_replicas: bool
    first: dict[str, npt.NDArray[np.float64]]


@dataclass
class _Row:
    """Steps in a row at which a weight was not the same.

    Attributes:
        place: the last step at which it was compared.
        last_apart: the last one at which it was not the same.
        count: how many such there are in a row.
    """

    place: Place
    last_apart: int = -1
    count: int = 0


class ReplicasDiffer(OfWorkers[_Numbers]):
    """Workers that began with the same weights and do not keep them the same.

    Only models of which all weights are the same at the first step that workers have saved are looked at: parts of a
    sharded model, stages of a pipeline, experts and models of different seeds are not. Where weights become the same
    again at a saved step, the finding is forgotten. It is for runs that save every worker (`include_workers` is `all`).
    """

    meaning = "weights that were the same on all workers at first are not the same, at several steps and to the end"
    patience = Parameter(whole, 3, "saved steps in a row")
    tolerance = Parameter(number, 1e-5, "largest difference, as part of what a weight amounts to")
    brings = {"weights,biases": {"reductions": "abs_mean"}}
    fewest_steps = 4
    severity = Severity.WARNING
    evidence = {
        "difference": "how far its statistics are apart, as part of what it amounts to",
        "same": "how many weights of the model have moved and are the same on these workers",
        "weights": "how many weights of the model were compared",
    }
    cause, advice = _OF_ALL

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self.fewest_steps = min(self.fewest_steps, 1 + self.patience)
        self._models: dict[tuple[str, ModeKeys], _Model] = {}
        self._rows: dict[tuple[str, ModeKeys], _Row] = {}

    def value_of(self, step: StepView) -> _Numbers:
        """Return the statistics of a worker's weights."""
        names = step.names(*_WEIGHTS)
        columns = [dict(step.column(statistic, names).items()) for statistic in _STATISTICS]
        return _Numbers(names, np.array([[column.get(name, np.nan) for name in names] for column in columns]))

    def compare(self, step: StepView, value: _Numbers, others: dict[str, _Numbers]) -> None:
        """Compare the weights of a worker with those of the first one."""
        other = next(iter(others.values()))
        mine, its = (dict(zip(one.names, one.values.T, strict=True)) for one in (value, other))
        by_model: dict[str, dict[str, float]] = {}
        for name in mine.keys() & its.keys():
            by_model.setdefault(name.partition("_")[0], {})[name] = _apart(mine[name], its[name])
        for title, apart in by_model.items():
            model = self._models.get((title, step.mode))
            if model is None or model.step == step.step:
                # What begins at 0 or 1, such as a bias, is the same in all parts of a model, too.
                tells = any(numbers[_STATISTICS.index("std")] > 0 for name in apart if (numbers := mine[name]).size)
                are_replicas = tells and not any(apart.values()) and (model is None or model.are_replicas)
                first = {name: mine[name] for name in apart}
                self._models[title, step.mode] = _Model(step.step, are_replicas, first)
            elif model.are_replicas:
                same = sum(
                    not apart[name] and not np.array_equal(mine[name], model.first[name], equal_nan=True)
                    for name in apart.keys() & model.first.keys()
                )
                for name in sorted(apart.keys() & model.first.keys()):
                    self._judge(step, name, {"difference": apart[name], "same": same, "weights": len(apart)})

    def _judge(self, step: StepView, name: str, evidence: dict[str, float]) -> None:
        row = self._rows.setdefault((name, step.mode), _Row(step.place))
        if row.place.step != step.step:
            self._forget_if_same(name, row)
            row.place = step.place
        if evidence["difference"] > self.tolerance and row.last_apart != step.step:
            row.count, row.last_apart = row.count + 1, step.step
            if row.count >= self.patience:
                severity = Severity.PROBLEM if evidence["same"] else Severity.WARNING
                cause, advice = _OF_SOME if evidence["same"] else _OF_ALL
                self.found(step, name, evidence, severity=severity, cause=cause, advice=advice)

    def _forget_if_same(self, name: str, row: _Row) -> None:
        """Of several workers two may be the same: only when all have been compared is it known of a step."""
        if row.last_apart != row.place.step:
            row.count = 0
            self.withdraw(row.place, name)

    def end(self) -> None:
        """Forget what has become the same again."""
        for (name, _), row in self._rows.items():
            self._forget_if_same(name, row)


def _apart(mine: npt.NDArray[np.float64], its: npt.NDArray[np.float64]) -> float:
    """Return how far statistics are apart, as part of the larger one; 0 where they are bitwise the same."""
    known = np.isfinite(mine) & np.isfinite(its)
    if np.array_equal(mine, its, equal_nan=True) or not known.any():
        return 0.0
    size = max(float(np.abs([mine[known], its[known]]).max()), 1e-30)
    return float(np.abs(mine[known] - its[known]).max()) / size
