"""Weights of a saved step, as they stand when it opens; those that have no values then, after their model's call."""

from __future__ import annotations

from typing import Any

from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.step_events import AfterBackward, ModelReturn, NewParameters, Probe, on
from smd_agent.pytorch.capture.gradients import Gradients
from smd_agent.pytorch.capture.trained_parameters import TrainedRoles, has_values

Pair = tuple[str, Any]


class Weights(Probe, domain=WEIGHTS, doing="saving weights"):
    """The weights of one step.

    Args:
        writer: takes them.
        roles: tell of those that are trained after all.
        gradients: tell which parameters have got one.
        wanted: whether the step may save any.
    """

    def __init__(self, writer: StepWriter, roles: TrainedRoles, gradients: Gradients, wanted: bool) -> None:
        self._writer = writer
        self._roles = roles
        self._gradients = gradients
        self.wanted = wanted
        self._late: list[Pair] = []

    @on(NewParameters)
    def save(self, new: NewParameters) -> None:
        """Save the parameters of a model, once a step."""
        self._late += [pair for pair in new.pairs if not has_values(pair[1])]
        self._write([pair for pair in new.pairs if has_values(pair[1])])

    @on(ModelReturn)
    def save_late(self, _: ModelReturn) -> None:
        """Save parameters that had no values before the forward, as those of lazy layers."""
        late = self._late
        if late:
            self._late = [pair for pair in late if not has_values(pair[1])]
            self._write([pair for pair in late if has_values(pair[1])])

    @on(AfterBackward, doing="saving weights that turned out to be trained")
    def save_doubtful(self, _: AfterBackward) -> None:
        """Save what has got a gradient, and was taken for frozen."""
        found = self._roles.turned_out_trained(self._gradients.changed)
        if found:
            self._write(found)

    def _write(self, pairs: list[Pair]) -> None:
        self._writer.save_tensors([name for name, _ in pairs], [parameter for _, parameter in pairs])
