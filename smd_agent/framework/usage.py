"""Writer of the collection ``usage``: numbers of how the program uses optimizers, models and losses in a saved step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.program_lines import line_in
from smd_agent.framework.step_events import Probe
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.interpreter.callers import callers


class Usage:
    """The numbers of one step that is saved.

    Args:
        writer: takes the values.
        roles: keep them out of the weights, whatever their names.
        told: texts of the whole run that were saved, by name.

    Attributes:
        writer: the same.
        wanted: whether the step saves them.
        any: whether it has got some.
        wanted_in_training: the same, and the step is none of an evaluation.
        place: gives the line where the program is; None where that is not known.
    """

    def __init__(self, writer: StepWriter, roles: ParameterRoles, told: dict[str, str]) -> None:
        self.writer = writer
        self._roles = roles
        self._told = told
        self.wanted = CollectionKeys.USAGE in writer.collections_due()
        self.any = False
        self.wanted_in_training = self.wanted and writer.mode is not ModeKeys.EVAL
        self.place: Callable[[], str | None] = lambda: line_in(callers())
        self._wants_lines = self.wanted_in_training and CollectionKeys.PARAMETERS in writer.collections_due()

    def save(self, what: str, numbers: Mapping[str, Any], here: bool = False) -> None:
        """Save numbers by name.

        Args:
            what: what is used, such as ``optimizer/Adam``.
            numbers: Python's, or tensors of shape ``()``.
            here: whether it is where the program is that it is used; then the line is saved, if it is another one than
                that which was saved last.
        """
        if here and self._wants_lines:
            self._save_line(facts.LINE + what)
        names = [f"{facts.USAGE}{what}/{name}" for name in numbers]
        self.any = self.any or bool(names)
        self._roles.keep_out(names)
        self.writer.save_tensors(names, list(numbers.values()))

    def _save_line(self, name: str) -> None:
        line = self.place()
        if line is not None and self._told.get(name) != line:
            self._told[name] = line
            self._roles.keep_out([name])
            self.writer.save_tensors((name,), (facts.as_text(line),))


class UsageProbe(Probe):
    """A probe whose numbers are of the collection ``usage``.

    Args:
        usage: takes the numbers.
        in_training: whether there are none of it in evaluations.
    """

    def __init__(self, usage: Usage, in_training: bool = False) -> None:
        self._usage = usage
        self.wanted = usage.wanted_in_training if in_training else usage.wanted
