"""ExplodingTensor: weights or gradients that are NaN or infinite."""

from __future__ import annotations

import numpy as np

from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, Need, StepView
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, flag, whole
from smd_agent.rules.series_view import LOSS, NORMS, SeriesView, last_row
from smd_agent.rules.skipped_updates import all_have_skipped

_LOOKED_AT = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, CollectionKeys.GRADIENTS)


class ExplodingTensor(BuiltInRule):
    """Weights or gradients that are NaN or infinite.

    A loss scaler has gradients overflow now and then, and passes over the update; so a gradient has to be so at some
    steps in a row, and is forgotten when it is finite again. Where a scaler's updates are known to be left out, they
    are no matter of this rule, but of UpdatesSkipped.
    """

    meaning = "a tensor has an element that is NaN or infinite; a gradient, at several steps in a row and to the end"
    collection_names = Parameter.of_collections(*_LOOKED_AT)
    tensor_regex = TENSOR_REGEX
    only_nan = Parameter(flag, False, "pass over elements that are infinite")
    patience = Parameter(whole, 3, "saved steps in a row for gradients", documented=1)
    brings = {"weights,biases,gradients": {"reductions": "abs_mean,nan_count,inf_count"}}
    chosen_by = ("collection_names", "tensor_regex")
    evidence = {
        "nan_count": "elements that are NaN, at the first step",
        "inf_count": "elements that are infinite, at the first step",
        "not_finite": "how many tensors of those looked at are not finite at the first step",
        "looked_at": "how many were looked at there",
    }
    cause = "An update was too large, or a value overflowed, in this tensor or in one that it is computed from"
    advice = "Find the first tensor and step, then lower the learning rate, clip gradients, or scale the loss"
    short = "not finite from step {step} on: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        collections = self.collection_names or ()
        self._series: SeriesView | None = None
        self.needs = (Need(collections, ("", "abs_mean", "l2", "mean", "nan_count")),) if collections else ()

    def take_series(self, series: SeriesView) -> None:
        """Take in the norms of all gradients together, and of all changes, of the steps that have them."""
        self._series = series

    def end(self) -> None:
        """Judge the norms, where neither the loss nor any tensor that was saved tells."""
        if self._series is None or self.patience == 1 or CollectionKeys.GRADIENTS not in (self.collection_names or ()):
            return
        for course in (course for name in NORMS for course in self._series.courses(name)):
            self.withdraw(course.place(0), course.name)
            loss = self._series.course(LOSS, course.mode)
            norms = course.where(~course.skipped)
            begin = last_row(~np.isfinite(norms.values))
            count = len(norms) - begin
            if not self._findings and count >= self.patience and (loss is None or np.isfinite(loss.values[-1])):
                self.found(norms.place(begin), course.name, until=norms.place(-1), steps=count)

    def take(self, step: StepView) -> None:
        """Look at the chosen tensors of a step."""
        names = step.names(*(self.collection_names or ()), patterns=self.tensor_regex or ())
        bad = not_finite(step, names)
        if self.only_nan:
            bad = {name: counts for name, counts in bad.items() if counts.get("nan_count") != 0}
        for key in [key for key in self._in_a_row if key[1] is step.mode and key[0] not in bad]:
            if key[0] in names:
                del self._in_a_row[key]
                if self.patience > 1:
                    self.withdraw(step, key[0])
        gradients = {*step.names(CollectionKeys.GRADIENTS)} if bad else set()
        if self.patience > 1 and gradients & bad.keys() and all_have_skipped(step):
            bad = {name: counts for name, counts in bad.items() if name not in gradients}
        for name, counts in bad.items():
            row = self._in_a_row.get((name, step.mode), 0) + 1
            if name in gradients:
                self._in_a_row[name, step.mode] = row
            if name not in gradients or row >= self.patience:
                self.found(step, name, {"not_finite": len(bad), "looked_at": len(names), **counts})
