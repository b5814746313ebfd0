"""Numbers of tensors by step: what the page shows as pictures of a row for each tensor, a column for each step.

They are as small as a picture needs them: levels of one byte or two, deflated, as text.

====================  ======================================================
code                  of 8 bits, and in brackets of 16
====================  ======================================================
0                     there is no number
1                     exactly 0
2 to 253 (65533)      levels from the lowest number to the highest one
254 (65534)           Inf
255 (65535)           NaN
====================  ======================================================

So the larger code is always the worse one, and a picture with less room than numbers shows the largest of several.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import UPDATE_RATIO
from smd_agent.printable import printable
from smd_agent.report.line_charts import Columns
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.step_view import Column, Names, StepView

ABSENT = -math.inf
"""What stands in a grid where there is no number; numbers are not negative."""

_FIRST = 2


def packed(grid: npt.NDArray[np.floating[Any]], is_share: bool, bits: int) -> dict[str, Any]:
    """Return a grid for JSON: ``low``, ``high``, ``log``, ``bits``, and ``data``, its codes deflated in base64.

    Args:
        grid: numbers from 0 up, Inf, NaN and `ABSENT`.
        is_share: whether levels go from 0 to 1 evenly; else they are those of the logarithm.
        bits: of a code, 8 or 16.
    """
    values = np.asarray(grid, np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (0.0, 1.0) if is_share else (1.0, 1.0)
    if not is_share and positive.size:
        low, high = float(positive.min()), float(positive.max())
    codes = encoded(values, low, high, is_share, bits)
    data = deflated(codes.astype(codes.dtype.newbyteorder("<")).tobytes())
    return {"low": low, "high": high, "log": not is_share, "bits": bits, "data": data}


def deflated(content: bytes) -> str:
    """Return bytes deflated, with the header and the checksum of zlib, in base64."""
    return base64.b64encode(zlib.compress(content, 6)).decode()


def encoded(
    values: npt.NDArray[np.float64], low: float, high: float, is_share: bool, bits: int
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the codes of numbers; the module says what they are. Arguments are those of `packed`."""
    last = 2**bits - 3
    codes = np.zeros(values.shape, np.uint16 if bits == 16 else np.uint8)
    finite = np.isfinite(values)
    scaled = _scaled(values[finite], low, high, is_share)
    codes[finite] = np.where(values[finite] > 0, _FIRST + np.rint(scaled * (last - _FIRST)), 1)
    codes[values == np.inf] = last + 1
    codes[np.isnan(values)] = last + 2
    return codes


def _scaled(values: npt.NDArray[np.float64], low: float, high: float, is_share: bool) -> npt.NDArray[np.float64]:
    if is_share:
        return np.clip(values, 0.0, 1.0)
    if high <= low:
        return np.ones_like(values)
    logarithms = np.log(np.maximum(values, low))
    return np.clip((logarithms - math.log(low)) / (math.log(high) - math.log(low)), 0.0, 1.0)


MOST_ROWS = 500
MOST_COLUMNS = 1000
# Up to so many numbers in all there is room for two bytes each, which tell numbers to the fourth digit.
_FINE = 600_000
# What is no tensor of a model, or may have values that are not there.
_NO_VALUES = (
    CollectionKeys.INPUT_DIGESTS,
    CollectionKeys.PARAMETERS,
    CollectionKeys.TREES,
    CollectionKeys.HYPERPARAMETERS,
    CollectionKeys.DATA_FACTS,
    CollectionKeys.FULL_SHAP,
)
# Of gradient/NAME, gradients/NAMEGrad, update_ratio/NAME and LAYER/weights/NAME:0 the name.
_OF_PARAMETER = re.compile(r"gradient/(.+)|gradients/(.+)Grad|update(?:_ratio)?/(.+)|[^/]+/weights/(.+):0", re.DOTALL)
_WITHOUT_GRADIENTS = (ModeKeys.EVAL, ModeKeys.PREDICT)


@dataclass(frozen=True)
class Kind:
    """The quantity that a grid shows.

    Attributes:
        key: its name in the page.
        title: what a reader calls it.
        about: what it says, one sentence.
        collections: tensors of these are its rows.
        patterns: and those in whose names one of these is found.
        statistic: of each tensor; empty for the value itself.
        is_share: whether it goes from 0 to 1.
        largest_first: whether rows are ordered by their last numbers, and not as they were saved.
    """

    key: str
    title: str
    about: str
    collections: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    statistic: str = "l2"
    is_share: bool = False
    largest_first: bool = False

    def names(self, step: StepView) -> Names:
        """Return the rows that a step has."""
        if step.mode in _WITHOUT_GRADIENTS:
            return ()
        return step.names(*self.collections, patterns=self.patterns)


KINDS = (
    Kind(
        "gradient_norm",
        "Gradient norm",
        "l2 of each gradient. A row that fades does not learn; one that grows without end explodes.",
        (CollectionKeys.GRADIENTS,),
    ),
    Kind(
        "weight_norm",
        "Weight norm",
        "l2 of each parameter. A row of one colour does not change.",
        (CollectionKeys.WEIGHTS, CollectionKeys.BIASES),
    ),
    Kind(
        "update_ratio",
        "Update ratio",
        "How far an update moves a parameter, divided by its l2. About 0.001 is usual; 0 means that it does not move.",
        patterns=(f"^{UPDATE_RATIO}",),
        statistic="",
    ),
    Kind(
        "zero_share",
        "Share of zeros",
        "Of the elements of each gradient and output of a layer. 1 means that nothing comes through.",
        (CollectionKeys.GRADIENTS, CollectionKeys.LAYERS, CollectionKeys.OUTPUTS),
        statistic="zero_share",
        is_share=True,
    ),
    Kind(
        "importance_gain",
        "Feature importance: gain",
        "What the splits by each feature gain, by boosting round; the most important one first.",
        patterns=("^feature_importance/gain/",),
        statistic="",
        largest_first=True,
    ),
    Kind(
        "importance_weight",
        "Feature importance: weight",
        "How many splits are by each feature, by boosting round; the one with the most first.",
        patterns=("^feature_importance/weight/",),
        statistic="",
        largest_first=True,
    ),
    Kind(
        "average_shap",
        "SHAP values",
        "Mean SHAP value of each feature without its sign, by boosting round; the largest one first.",
        (CollectionKeys.AVERAGE_SHAP,),
        statistic="",
        largest_first=True,
    ),
)


class Grid:
    """The numbers of one kind.

    Args:
        kind: what they are.
        names: of the tensors, in the order of the rows.
        steps: counted over all modes, at which any of them was saved.
        first: the names that come first where they are too many.
    """

    def __init__(self, kind: Kind, names: Iterable[str], steps: Sequence[int], first: Iterable[str] = ()) -> None:
        every = [*names]
        wanted = {*first}
        by_need = sorted(every, key=lambda name: name not in wanted and parameter_of(name) not in wanted)
        kept = {*by_need[:MOST_ROWS]}
        self.kind = kind
        self.names = [name for name in every if name in kept]
        self.left_out = len(every) - len(self.names)
        self.columns = Columns(steps, MOST_COLUMNS)
        self.values = np.full((len(self.names), len(self.columns.steps)), ABSENT)
        self._rows = {name: number for number, name in enumerate(self.names)}
        self._places: dict[Names, tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = {}

    @property
    def is_empty(self) -> bool:
        """True if it has no number."""
        return not bool((self.values != ABSENT).any())

    def in_order(self) -> Grid:
        """Put the rows in their order, once all numbers are there."""
        if self.kind.largest_first:
            known = np.where(self.values == ABSENT, -1, self.values)
            last = [row[row >= 0][-1:].sum() for row in known]
            order = sorted(range(len(last)), key=lambda number: -last[number])
            self.names, self.values = [self.names[number] for number in order], self.values[order]
        return self

    def add(self, step: StepView) -> None:
        """Take what a worker saved at a step; the largest number of several workers and steps stays, NaN above all."""
        place = self.columns.place(step.place.global_step)
        names = self.kind.names(step)
        if place is None or not names:
            return
        column = step.column(self.kind.statistic, names)
        own, rows = self._places_of(column)
        self.values[rows, place] = np.maximum(self.values[rows, place], np.abs(column.values[own]))

    def _places_of(self, column: Column) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        if column.names not in self._places:
            pairs = [(own, self._rows[name]) for own, name in enumerate(column.names) if name in self._rows]
            both = np.array(pairs, np.intp).reshape(-1, 2)
            self._places[column.names] = both[:, 0], both[:, 1]
        return self._places[column.names]


class NonFinite:
    """The share of elements that are NaN or infinite, of those tensors alone that have any.

    Args:
        steps: counted over all modes.
    """

    kind = Kind(
        "non_finite",
        "NaN and Inf",
        "Share of elements that are not finite, by the step at which that began.",
        is_share=True,
    )

    def __init__(self, steps: Sequence[int]) -> None:
        self.columns = Columns(steps, MOST_COLUMNS)
        self._found: dict[str, tuple[int, npt.NDArray[np.float64]]] = {}
        self.looked_at: set[str] = set()
        self._known: set[Names] = set()

    def add(self, step: StepView) -> None:
        """Take what a worker saved at a step."""
        place = self.columns.place(step.place.global_step)
        if place is None:
            return
        names = step.without(step.names(), step.names(*_NO_VALUES))
        if names not in self._known:
            self._known.add(names)
            self.looked_at.update(names)
        for name, counts in not_finite(step, names).items():
            size = step.size(name)
            # Of a norm alone it is not known how many elements it was.
            share = min(sum(counts.values()) / size, 1.0) if size and counts else math.nan
            self._take(name, step.place.global_step, place, share)

    def _take(self, name: str, step: int, place: int, share: float) -> None:
        if name not in self._found:
            self._found[name] = (step, np.full(len(self.columns.steps), ABSENT))
        row = self._found[name][1]
        row[place] = np.maximum(row[place], share)

    def grid(self) -> Grid:
        """Return the tensors that have any, by when it began."""
        order = sorted(self._found, key=lambda name: self._found[name][0])
        grid = Grid(self.kind, order, [])
        grid.columns = self.columns
        grid.values = np.array([self._found[name][1] for name in grid.names])
        return grid


def parameter_of(name: str) -> str:
    """Return the parameter that a gradient, an update or a variable of Keras is of; else the name itself."""
    found = _OF_PARAMETER.fullmatch(name)
    return next(filter(None, found.groups())) if found else name


def to_json(grids: Sequence[Grid]) -> list[dict[str, Any]]:
    """Return grids for JSON, with as many digits as there is room for."""
    bits = 16 if sum(grid.values.size for grid in grids) <= _FINE else 8
    return [
        {
            "key": grid.kind.key,
            "title": grid.kind.title,
            "names": [printable(name) for name in grid.names],
            "parameters": [printable(parameter_of(name)) for name in grid.names],
            "steps": grid.columns.steps,
            "perColumn": grid.columns.per_column,
            "share": grid.kind.is_share,
            **packed(grid.values, grid.kind.is_share, bits),
        }
        for grid in grids
    ]
