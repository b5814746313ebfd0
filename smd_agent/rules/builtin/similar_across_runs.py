"""SimilarAcrossRuns: a run whose values are not those of another one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.compare.common_values import Side, common
from smd_agent.errors import SMDebugError
from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, Need, NotJudged, Severity, StepView
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, names, number

_STATISTICS = ("mean", "std", "l2", "abs_mean", "min", "max")


class SimilarAcrossRuns(BuiltInRule):
    """A run whose values are not those of another one.

    `check RUN --rules SimilarAcrossRuns --other OTHER_RUN` names the other run; in a program it is a trial or the
    folder of a run. What both have saved is compared: the same tensor of the same worker, at the same step of the same
    mode, value by value, or where either has statistics only, by those that both have. Trainings that are not seeded,
    or that add up in another order, are different without any mistake.
    """

    meaning = "a tensor is not the same as at the same step of another run"
    other_trials: Any = Parameter(names, None, "the other runs: trials, or folders")
    other_trial: Any = Parameter(names, None, "the same for one run")
    collection_names = Parameter(
        names,
        (CollectionKeys.LOSSES,),
        "collections whose tensors are compared; in a program without names and patterns, all",
        documented=(),
    )
    tensor_regex = TENSOR_REGEX
    rtol = Parameter(number, 1e-5, "relative tolerance of `numpy.allclose`")
    atol = Parameter(number, 1e-8, "absolute tolerance of `numpy.allclose`")
    brings = {"losses": {}}
    chosen_by = ("collection_names", "tensor_regex")
    only_by_name = True
    severity = Severity.WARNING
    evidence = {
        "here": "the value of this run: of the element or the statistic that differs most",
        "other": "the value of the other run",
        "difference": "how far they are apart",
        "shape": "1 where the tensors have different shapes, or are no numbers and differ",
    }
    cause = "The runs have different code, data, seeds, libraries or hardware"
    advice = "Look at the first step at which something differs, and there at inputs before weights"

    def __init__(
        self,
        base_trial: Trial | None = None,
        action_str: str | None = "",
        other_trials: Any = None,
        *,
        other_trial: Any = None,
        **given: Any,
    ) -> None:
        others = [*_trials(other_trials), *_trials(other_trial)]
        super().__init__(base_trial, action_str, others or None, **given)
        # A fresh rule is made of these.
        self._values["other_trials"] = self.other_trials = others or None

    def start(self) -> None:
        """Begin with nothing compared."""
        self.needs = (Need(self.collection_names, ("", *_STATISTICS)),) if self.collection_names else ()
        self._refreshed: set[Trial] = set()
        self._has_compared = False

    def take(self, step: StepView) -> None:
        """Compare the chosen tensors of a step with those of the other runs."""
        names = step.names(*(self.collection_names or ()), patterns=self.tensor_regex or ())
        for trial in self.other_trials or ():
            if trial not in self._refreshed:
                trial.maybe_refresh()
                self._refreshed.add(trial)
            there = step.side.counterpart(trial)
            if there is not None:
                present = trial.contents(there.file).names
                for name in names:
                    if name in present:
                        self._compare(step, there, name)

    def _compare(self, step: StepView, there: Side, name: str) -> None:
        try:
            both = common(step.side, name, there, name)
        except SMDebugError as error:
            step.cannot_read(error)
            return
        if both is None:
            return
        self._has_compared = True
        here, other = both.numbers
        are_numbers = here.dtype.kind in "fiub" and other.dtype.kind in "fiub"
        if here.shape != other.shape or not are_numbers:
            if not np.array_equal(here, other):
                self.found(step, name, {"shape": 1})
            return
        mine, its = here.astype(np.float64).reshape(-1), other.astype(np.float64).reshape(-1)
        differ = np.flatnonzero(~np.isclose(mine, its, self.rtol, self.atol, equal_nan=True))
        if len(differ):
            apart = np.abs(mine[differ] - its[differ])
            worst = int(np.argmax(apart))
            numbers = {"here": mine[differ[worst]], "other": its[differ[worst]], "difference": apart[worst]}
            self.found(step, name, {key: float(value) for key, value in numbers.items()})

    @property
    def has_judged(self) -> bool:
        """True if anything could be compared."""
        return self._has_compared

    def not_judged(self) -> NotJudged:
        """Say what is lacking."""
        if self.needs and not self._steps_seen:
            return super().not_judged()
        if not self.other_trials:
            return NotJudged(self.rule_name, "no other run is named", "add --other RUN")
        return NotJudged(self.rule_name, "the runs have no step at which both have saved the same tensor")


def _trials(given: Any) -> list[Trial]:
    """Return the trials that are meant by trials or folders, one or several, or text with commas."""
    if given is None or given == "":
        return []
    if isinstance(given, Trial):
        return [given]
    if isinstance(given, str):
        return [create_trial(part.strip()) for part in given.split(",") if part.strip()]
    if isinstance(given, os.PathLike):
        return [create_trial(given)]
    several: Iterable[Any] = given
    return [trial for one in several for trial in _trials(one)]
