"""A rule as old programs write one: a class that is asked, step by step, whether its condition is met.

Its actions are a JSON string of one action or a list, ``{"name": "stoptraining", "training_job_prefix": ...}`` and
``{"name": "sms" or "email", "endpoint": ...}``. All of them need a service of the cloud, so they are accepted, and a
line says that they do nothing here.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from smd_agent.errors import RuleEvaluationConditionMet, TensorUnavailable
from smd_agent.printable import shortened

if TYPE_CHECKING:
    from smd_agent.analysis.tensor import Tensor
    from smd_agent.analysis.trial import Trial

logger = logging.getLogger("smd_agent")

# Of each action, what it cannot do without.
_NEEDED = {"stoptraining": "training_job_prefix", "sms": "endpoint", "email": "endpoint"}


class Actions:
    """The actions of one rule.

    ``names`` are those that were understood.

    Args:
        actions_str: JSON; None and an empty string are no action.
        rule_name: of the rule.

    Raises:
        ValueError: it is no JSON.
    """

    def __init__(self, actions_str: str | None, rule_name: str) -> None:
        self._rule_name = rule_name
        text = (actions_str or "").strip()
        # Values are made small letters too, as ever.
        found = json.loads(text.lower()) if text else []
        listed = found if isinstance(found, list) else [found]
        self.names = [str(one["name"]) for one in listed if self._is_known(one)]
        if self.names:
            logger.warning(
                "smd_agent: %s: not available here, as they need a service of the cloud: %s",
                rule_name,
                ", ".join(self.names),
            )

    def _is_known(self, action: Any) -> bool:
        if not isinstance(action, dict):
            problem = "is no action"
        elif action.get("name") not in _NEEDED:
            problem = f"has no name out of {', '.join(_NEEDED)}"
        elif action.get(_NEEDED[action["name"]]) is None:
            problem = f"needs {_NEEDED[action['name']]}"
        else:
            return True
        logger.warning("smd_agent: %s: %s %s", self._rule_name, shortened(repr(action)), problem)
        return False

    def invoke(self, message: str = "") -> None:
        """Say what would be done now."""
        for name in self.names:
            logger.info("smd_agent: %s: %s is not available here", self._rule_name, name)


class RequiredTensors:
    """The required tensors of a rule; where no trial is named, those of its base trial.

    Args:
        base_trial: the rule's.
        other_trials: None or more of them.
    """

    def __init__(self, base_trial: Trial, other_trials: Iterable[Trial] | None) -> None:
        trials = (base_trial, *(other_trials or ()))
        self.base_trial = base_trial
        self._per_trial = {trial: RequiredTensorsForTrial(trial) for trial in trials}

    def add(self, name: str, steps: list[int], trial: Trial | None = None, should_match_regex: bool = False) -> None:
        """Require a tensor at some steps; with ``should_match_regex`` all that the name, a regex, is found in.

        Raises:
            TensorUnavailable: there is none of this name.
        """
        self._of(trial).add(name, steps, should_match_regex)

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """Return the steps at which a tensor is required."""
        return self._of(trial).get_tensor_steps(name)

    def get_names(self, trial: Trial | None = None) -> KeysView[str]:
        """Return the names of the required tensors."""
        return self._of(trial).get_names()

    def get(self, trial: Trial | None = None) -> ValuesView[Tensor]:
        """Return the required tensors."""
        return self._of(trial).get()

    def clear(self) -> None:
        """Require nothing any more."""
        for required in self._per_trial.values():
            required.clear()

    def fetch(self) -> None:
        """Wait for the required steps and read the tensors.

        Raises:
            StepUnavailable, TensorUnavailableForStep: one was not saved.
            NoMoreData: the run ended before a step.
        """
        for required in self._per_trial.values():
            required.fetch()

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        return self._per_trial[self.base_trial if trial is None else trial]


class RequiredTensorsForTrial:
    """The required tensors of one trial; `RequiredTensors` says what each method does."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._tensor_steps: dict[str, list[int]] = {}
        self._tensors: dict[str, Tensor] = {}

    def add(self, name: str, steps: list[int], should_match_regex: bool = False) -> None:
        """Require a tensor at some steps."""
        if not should_match_regex and not self.trial.has_tensor(name):
            raise TensorUnavailable(name)
        for one in self.trial.tensor_names(regex=[name]) if should_match_regex else [name]:
            self._tensor_steps.setdefault(one, []).extend(steps)
            self._tensors[one] = self.trial.tensor(one)

    def get_tensor_steps(self, name: str) -> list[int]:
        """Return the steps at which a tensor is required."""
        return self._tensor_steps[name]

    def get_names(self) -> KeysView[str]:
        """Return the names of the required tensors."""
        return self._tensor_steps.keys()

    def get(self) -> ValuesView[Tensor]:
        """Return the required tensors."""
        return self._tensors.values()

    def clear(self) -> None:
        """Require nothing any more."""
        self._tensor_steps.clear()
        self._tensors.clear()

    def fetch(self) -> None:
        """Wait for the required steps and read the tensors."""
        self.trial.wait_for_steps(sorted({step for steps in self._tensor_steps.values() for step in steps}))
        for name, steps in self._tensor_steps.items():
            for step in steps:
                self._tensors[name].value(step)


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
        action_str: JSON, see `smd_agent.rules.rule`.
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
