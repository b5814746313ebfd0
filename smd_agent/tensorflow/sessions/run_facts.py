"""Facts of a session's run that trains: how far it moves variables, and what is known of them; see ``training_facts``.

Variables are read in runs of their own, before and after it. The model of a graph is not known: what is told of
variables is of all that can be trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from smd_agent.core.failure_domains import UPDATES
from smd_agent.framework import training_facts as facts
from smd_agent.framework.keras.facts import FactsSaver, NoLook, StepFacts
from smd_agent.framework.keras.optimizers import GivenVariables
from smd_agent.framework.weight_changes import Moved, changes, part_of
from smd_agent.tensorflow.sessions.graph_notes import OptimizerNotes, notes_on
from smd_agent.tensorflow.types import Graph, Session, Variable

_TITLE = "variables"


class _Read(NoLook):
    """Variables as they were read last.

    Attributes:
        values: of each, by its name in the graph.
    """

    def __init__(self) -> None:
        self.values: Mapping[str, Any] = {}

    def size_of(self, parameter: Any) -> int:
        """Number of elements of a variable."""
        return int(self.values[parameter.name].size)

    def sample(self, parameter: Any) -> npt.NDArray[Any] | None:  # type: ignore[override]
        """A copy of what is looked at of a variable, in float32 or float64; None if it has no floats."""
        array = self.values.get(parameter.name)
        return None if array is None or array.dtype.kind != "f" else part_of(array)

    def changes(self, found: Sequence[Moved]) -> Sequence[tuple[Moved, Any, Any]]:
        """Update and update ratio of each."""
        return changes(found)


class RunFacts:
    """The facts of one run.

    Args:
        graph: that is run.
        optimizers: whose updates are part of it.
        wants: tells by name what the step saves.

    Attributes:
        variables: those of which the updates are saved, by name in the graph.
    """

    def __init__(self, graph: Graph, optimizers: Sequence[OptimizerNotes], wants: Callable[[str], bool]) -> None:
        with graph.as_default():
            self._trainable: list[Any] = tf.compat.v1.trainable_variables()
            known = {variable.name: variable for variable in (*tf.compat.v1.global_variables(), *self._trainable)}
        self._optimizers = optimizers
        self._known: dict[str, Variable] = known
        self._ever = _given(notes_on(graph).optimizers, known)
        names = dict.fromkeys(name for one in optimizers for name in one.given if name in known)
        self.variables = {name: known[name] for name in names if wants(facts.UPDATE + _plain(name))}
        self._differentiated = {id(known[name]) for name in notes_on(graph).gradients if name in known}
        self._before: Mapping[str, Any] = {}

    def before(self, values: Mapping[str, Any]) -> None:
        """The variables have been read before the run."""
        self._before = values

    @UPDATES.fence("saving facts of a step")
    def save(self, saver: FactsSaver, session: Session) -> None:
        """Save them after the run."""
        look, variables = _Read(), [*self.variables.values()]
        step = StepFacts(saver, look, self._ever)
        step.given.update(_given(self._optimizers, self._known))
        if step.wants_updates and variables:
            look.values = self._before
            step.add([*map(_plain, self.variables)], variables)
            step.before_update(variables)
            look.values = session.run(self.variables)
            step.after_update(variables)
        names = [_plain(variable.name) for variable in self._trainable]
        step.tell_of_variables(_TITLE, names, self._trainable, self._trainable, self._differentiated)
        step.close()


def _given(optimizers: Iterable[OptimizerNotes], known: Mapping[str, Variable]) -> GivenVariables:
    """The variables that optimizers were given."""
    found = GivenVariables()
    for optimizer in optimizers:
        pairs = [(has_gradient or None, known[name]) for name, has_gradient in optimizer.given.items() if name in known]
        found.add(optimizer, [gradient for gradient, _ in pairs], [variable for _, variable in pairs])
    return found


def _plain(name: str) -> str:
    """The name of a variable without the number of its output, as loops with a tape have it."""
    return name.partition(":")[0]
