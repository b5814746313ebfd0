"""The tensors that a rule wants to be read before it looks at a step, by trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.errors import TensorUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, KeysView, ValuesView

    from smd_agent.analysis.tensor import Tensor
    from smd_agent.analysis.trial import Trial


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
