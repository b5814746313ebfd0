"""WeightUpdateRatio: updates that are too large, or too small, for the weights."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.framework.training_facts import UPDATE_RATIO
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Need, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.update_ratios import UpdateRatios

# Updates before these are left out: weights that begin at 0 have a ratio of 1.
_WARM_UP = 10


class WeightUpdateRatio(BuiltInRule):
    """Updates that are too large, or too small, for the weights.

    By its documented defaults it compares weights, saved whole, of two saved steps: the l2 of the difference divided by
    that of the earlier ones. `check` looks at `update_ratio` of matrices, which is that of one update. One is too large
    at several saved steps in a row after the first ones; they are too small if those of all matrices are at all steps,
    so that they are lost in the rounding of float32: at the end of a schedule they are so as well.
    """

    meaning = "an update is as large as its weights at many steps in a row, or all are lost in rounding at all steps"
    num_steps: Parameter[int | None] = Parameter(
        whole,
        None,
        "weights are compared with those of the earliest saved step that is no more steps back; by default with "
        "those of the saved step before",
    )
    large_threshold = Parameter(number, 0.5, "upper bound of the ratio", documented=10.0)
    small_threshold = Parameter(number, 1e-7, "lower bound of the ratio", documented=1e-8)
    epsilon = Parameter(number, 1e-9, "is added to the l2 of the earlier weights")
    patience = Parameter(whole, 10, "saved steps in a row; at 1, weights of saved steps are compared", documented=1)
    brings = {"weights": {"save_interval": 500}}
    modes = TRAINING
    severity = Severity.WARNING
    evidence = {
        "ratio": "l2 of the update divided by that of the weights before it",
        "largest_ratio": "the largest one of all matrices and steps",
    }
    cause = "The learning rate is far too high for these weights"
    advice = "Lower the learning rate; about 0.001 is usual for the ratio"
    short = "updates too large: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        if self.patience > 1:
            self.needs = (Need((CollectionKeys.UPDATES,)),)
            self.fewest_steps = _WARM_UP
        else:
            self.needs = (Need((CollectionKeys.WEIGHTS,), saved_by="weights to --save, with --raw"),)
            self.fewest_steps = 2
        self._before: dict[str, deque[tuple[int, npt.NDArray[Any]]]] = {}
        self._ratios = UpdateRatios()
        self._taken = 0
        self._largest = 0.0
        self._first: Place | None = None
        self._last: Place | None = None

    def take(self, step: StepView) -> None:
        """Look at the updates of a step, or at its weights."""
        if self.patience > 1:
            self._look_at_updates(step)
        else:
            self._compare_weights(step)

    def end(self) -> None:
        """Tell whether all updates were lost."""
        if self._first is None or self._last is None:
            return
        self.withdraw(self._first)
        if self._taken >= _WARM_UP and 0 < self._largest < self.small_threshold:
            self.found(
                self._first,
                None,
                {"largest_ratio": self._largest},
                cause="The learning rate is far too low for these weights, or the gradients are scaled down",
                advice="Raise the learning rate, about 0.001 is usual for the ratio; check how gradients are scaled",
                short="updates too small",
                until=self._last,
                steps=self._taken,
            )

    def _look_at_updates(self, step: StepView) -> None:
        names, ratios = step.numbers(self._ratios.names_in(step))
        if not names:
            return
        self._first, self._last = self._first or step.place, step.place
        self._taken += 1
        # A NaN is no update that is lost.
        self._largest = max(self._largest, float(np.where(ratios >= 0, ratios, np.inf).max()))
        if self._taken <= _WARM_UP:
            return
        large = {names[place]: float(ratios[place]) for place in np.flatnonzero(ratios > self.large_threshold).tolist()}
        self._in_a_row = {name: self._in_a_row.get(name, 0) + 1 for name in large}
        for name, ratio in large.items():
            if self._in_a_row[name] >= self.patience:
                self.found(step, name.removeprefix(UPDATE_RATIO), {"ratio": ratio})

    def _compare_weights(self, step: StepView) -> None:
        for name in self.needs[0].names(step):
            value = step.value(name)
            if value is None or value.dtype.kind not in "fiu":
                continue
            now = value.astype(np.float64)
            before = self._before.setdefault(name, deque())
            while before and self.num_steps is not None and before[0][0] < step.step - self.num_steps:
                before.popleft()
            if before and before[0][1].shape == now.shape:
                earlier = before[0][1]
                ratio = float(np.linalg.norm(now - earlier) / (np.linalg.norm(earlier) + self.epsilon))
                if ratio > self.large_threshold:
                    self.found(step, name, {"ratio": ratio})
                elif ratio < self.small_threshold:
                    self.found(
                        step,
                        name,
                        {"ratio": ratio},
                        cause="The weights hardly move: the learning rate is too low, or they have no gradient",
                        advice="Check the learning rate, and that the parameter is trained",
                        short="updates too small: {}",
                    )
            if self.num_steps is None:
                before.clear()
            before.append((step.step, now))
