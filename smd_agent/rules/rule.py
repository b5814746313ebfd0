"""A rule as old programs write one: a class that is asked, step by step, whether its condition is met."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from smd_agent.errors import RuleEvaluationConditionMet
from smd_agent.rules.action import Actions
from smd_agent.rules.req_tensors import RequiredTensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smd_agent.analysis.trial import Trial


class Rule(ABC):
    """A rule over one trial, or over several.

    Attributes:
        base_trial: the trial whose steps are looked at.
        other_trials: further ones, or None.
        trials: all of them.
        req_tensors: what is read before a step is looked at; `set_required_tensors` fills it.
        rule_name: the class's name.
        report: for the rule to fill.

    Args:
        base_trial: the trial whose steps are looked at.
        action_str: JSON, see `smd_agent.rules.action`.
        other_trials: further ones.
    """

    def __init__(self, base_trial: Trial, action_str: str | None = "", other_trials: Iterable[Trial] | None = None):
        self.base_trial = base_trial
        self.other_trials = None if other_trials is None else [*other_trials]
        self.trials = [base_trial, *(self.other_trials or ())]
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
        self.logger = logging.getLogger("smd_agent")
        self.rule_name = type(self).__name__
        self._actions = Actions(action_str, rule_name=self.rule_name)
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:
        """Fill ``req_tensors`` with what is to be read before `invoke_at_step`; by default nothing."""
        return

    @abstractmethod
    def invoke_at_step(self, step: int) -> object:
        """Tell by something true whether the condition is met at a step, counted over all modes."""

    def invoke(self, step: int) -> None:
        """Wait for a step and ask whether the condition is met there.

        While it is asked, the trials take in no new steps.

        Raises:
            RuleEvaluationConditionMet: it is.
            StepUnavailable, TensorUnavailable, TensorUnavailableForStep: what was asked for was not saved.
            NoMoreData: the run ended before the step.
        """
        self.base_trial.wait_for_steps([step])
        with no_refresh(self.trials):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            met = self.invoke_at_step(step)
        if met:
            self._actions.invoke()
            raise RuleEvaluationConditionMet(self.rule_name, step)


@contextmanager
def no_refresh(trials: Trial | Iterable[Trial]) -> Iterator[Trial | Iterable[Trial]]:
    """Have a trial, or several, take in no new steps inside of the ``with`` block."""
    with _refreshing(trials, False):
        yield trials


@contextmanager
def refresh(trials: Trial | Iterable[Trial]) -> Iterator[Trial | Iterable[Trial]]:
    """Have a trial, or several, take in new steps inside of the ``with`` block."""
    with _refreshing(trials, True):
        yield trials


@contextmanager
def _refreshing(trials: Trial | Iterable[Trial], wanted: bool) -> Iterator[None]:
    # A Trial is no Iterable: asked for its attribute, its type needs no import.
    several: Iterable[Any] = [trials] if hasattr(trials, "dynamic_refresh") else trials
    before = [(trial, trial.dynamic_refresh) for trial in several]
    for trial, _ in before:
        trial.dynamic_refresh = wanted
    try:
        yield
    finally:
        for trial, refreshing in before:
            trial.dynamic_refresh = refreshing
