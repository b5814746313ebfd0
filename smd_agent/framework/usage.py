"""Writer of the collection ``usage``: numbers of how the program uses optimizers, models and losses in a saved step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import Probe
from smd_agent.framework.weights_or_biases import ParameterRoles


class Usage:
    """The numbers of one step that is saved.

    Args:
        writer: takes the values.
        roles: keep them out of the weights, whatever their names.

    Attributes:
        writer: the same.
        wanted: whether the step saves them.
        any: whether it has got some.
        wanted_in_training: the same, and the step is none of an evaluation.
    """

    def __init__(self, writer: StepWriter, roles: ParameterRoles) -> None:
        self.writer = writer
        self._roles = roles
        self.wanted = CollectionKeys.USAGE in writer.collections_due()
        self.any = False
        self.wanted_in_training = self.wanted and writer.mode is not ModeKeys.EVAL

    def save(self, what: str, numbers: Mapping[str, Any]) -> None:
        """Save numbers by name.

        Args:
            what: what is used, such as ``optimizer/Adam``.
            numbers: Python's, or tensors of shape ``()``.
        """
        names = [f"{facts.USAGE}{what}/{name}" for name in numbers]
        self.any = self.any or bool(names)
        self._roles.keep_out(names)
        self.writer.save_tensors(names, list(numbers.values()))


class UsageProbe(Probe):
    """A probe whose numbers are of the collection ``usage``.

    Args:
        usage: takes the numbers.
        in_training: whether there are none of it in evaluations.
    """

    def __init__(self, usage: Usage, in_training: bool = False) -> None:
        self._usage = usage
        self.wanted = usage.wanted_in_training if in_training else usage.wanted
