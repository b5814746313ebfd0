"""UnchangedTensor: tensors that are the same step after step."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import (
    TRAINING,
    BuiltInRule,
    CollectionKeys,
    ModeKeys,
    Need,
    Severity,
    Split,
    StepView,
)
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, flag, number, whole
from smd_agent.rules.series_view import LOSS, SeriesView

# A share of rows, as boosted trainings have it, moves only where a row changes sides.
_SHARE_OF_ROWS = re.compile("-m?error(@|-mean$|$)")


class UnchangedTensor(BuiltInRule):
    """Tensors that are the same step after step.

    Two tensors with the same statistics may still differ, so they have to be saved whole. A loss that is learned comes
    to rest; what `check` judges by is one that never moves, from the first training step to the last, and is not 0.
    The error of boosted trees is a share of rows, which may well stand still.
    """

    meaning = "a tensor is equal at the last saved steps; a loss, at all of them, to the last bit"
    collection_names = Parameter.of_collections(CollectionKeys.LOSSES)
    tensor_regex = TENSOR_REGEX
    num_steps = Parameter(whole, 10, "saved steps that are compared", documented=3)
    rtol = Parameter(number, 0.0, "relative tolerance of numpy.allclose", documented=1e-5)
    atol = Parameter(number, 0.0, "absolute tolerance of numpy.allclose", documented=1e-8)
    equal_nan = Parameter(flag, False, "NaN equals NaN")
    never_moved = Parameter(
        flag, True, "find only what is the same from the first saved step to the last, and not 0", documented=False
    )
    brings = {"losses": {}}
    chosen_by = ("collection_names", "tensor_regex")
    split = Split.TENSOR
    severity = Severity.WARNING
    evidence = {
        "in_a_row": "at how many saved steps in a row it was the same by then",
        "first_element": "its first element",
    }
    cause = "The loss does not depend on what is trained, or no update reaches the weights that it depends on"
    advice = "Check that the loss is computed from the model's output, that backward() and step() follow, and the rate"
    short = "always the same: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        names = " or ".join(self.collection_names or ("what it looks at",))
        self.needs = (
            Need(self.collection_names or (), ("",), self.tensor_regex or (), f"{names} to --save, with --raw"),
        )
        self.fewest_steps = self.num_steps
        # The last values of each, of which the newest is compared with all others.
        self._last: dict[tuple[str, ModeKeys], deque[npt.NDArray[Any]]] = {}
        self._moved: set[tuple[str, ModeKeys]] = set()

    def take_series(self, series: SeriesView) -> None:
        """Look at the loss of all steps, of which none may differ."""
        if not self.never_moved or CollectionKeys.LOSSES not in (self.collection_names or ()):
            return
        for loss in series.courses(LOSS):
            self.steps_of_series = max(self.steps_of_series, len(loss))
            self.withdraw(loss.place(0), LOSS)
            if len(loss) >= self.num_steps and np.all(loss.values == loss.values[0]):
                begins, ends = loss.place(self.num_steps - 1), loss.place(-1)
                numbers = {"in_a_row": self.num_steps, "first_element": float(loss.values[0])}
                self.found(begins, LOSS, numbers, until=ends, steps=len(loss) - self.num_steps + 1)

    def take(self, step: StepView) -> None:
        """Compare the chosen tensors of a step with those before."""
        if self.never_moved and step.mode not in TRAINING:
            return
        for name in self.needs[0].names(step):
            if self.never_moved and _SHARE_OF_ROWS.search(name):
                continue
            key = (name, step.mode)
            value = None if key in self._moved else step.value(name)
            if value is None or value.dtype.kind not in "fiubc" or not value.size:
                continue
            last = self._last.setdefault(key, deque(maxlen=max(self.num_steps - 1, 1)))
            same = all(self._equal(value, before) for before in last)
            if self.never_moved and last and not (same and value.any()):
                self._moved.add(key)
                self.withdraw(step, name)
                del self._last[key]
                continue
            row = self._in_a_row[key] = self._in_a_row.get(key, 0) + 1 if same else 1
            if same and len(last) >= self.num_steps - 1:
                self.found(step, name, {"in_a_row": row, "first_element": float(value.reshape(-1)[0].real)})
            last.append(value)

    def _equal(self, value: npt.NDArray[Any], before: npt.NDArray[Any]) -> bool:
        return value.shape == before.shape and bool(
            np.allclose(value, before, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan)
        )
