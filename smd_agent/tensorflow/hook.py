"""Base of the hooks for Keras, tapes, sessions and estimators."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.value_writing import Captured
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.weak_references import Reference
from smd_agent.framework.wrong_steps import WrongSteps
from smd_agent.tensorflow.arrays import to_array
from smd_agent.tensorflow.collection import Collection
from smd_agent.tensorflow.environment import facts
from smd_agent.tensorflow.last_variables import LastVariables
from smd_agent.tensorflow.replicas import rank_and_size
from smd_agent.tensorflow.tape_rows import TapeRows
from smd_agent.tensorflow.types import Optimizer, Tape, Variable
from smd_agent.tensorflow.variable_names import is_symbolic, variables_in

if TYPE_CHECKING:
    from smd_agent.tensorflow.repeated_steps import RepeatedSteps

Pairs = Iterable[tuple[object, object]]
"""Gradients, each with its variable."""

T = TypeVar("T")
TapeT = TypeVar("TapeT", bound=Tape)


class Watching(Protocol):
    """Has what a script hands to a hook watched. Those who watch import the hook, so the package brings them along."""

    def tape(self, tape: Tape) -> None:
        """Watch this tape."""

    def optimizers(self) -> None:
        """Watch the optimizers of ``tf.compat.v1``."""


class _ToldVariables:
    """Variables of an optimizer that nobody knows but the script, which names them; they are held weakly.

    Attributes:
        reference: to this, as it stands among the optimizers.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Variable]] = {}
        self.reference: weakref.ref[Any] = weakref.ref(self)

    def add(self, variables: Iterable[Variable]) -> None:
        """Know some more."""
        self._references.update((id(variable), Reference(variable)) for variable in variables)

    @property
    def variables(self) -> list[Variable]:
        """Those that are alive."""
        return [variable for reference in self._references.values() if (variable := reference()) is not None]


class TensorflowHook(KerasLogs):
    """Saves the tensors of a TensorFlow program by step and mode.

    Attributes:
        watching: has tapes and optimizers watched; set by the package.
        optimizers: Keras optimizers whose variables are saved with the steps of tapes.
        last_variables: of the last saved step with tapes, for the end.
        tape_rows: the numbers of every step with tapes.
        wrong_steps: the note of the first step whose loss is not finite.
        repeated: the steps of a training that is done again; None in any other.
    """

    collection_class = Collection
    facts = (facts, *KerasLogs.facts)
    watching: ClassVar[Watching]
    repeated: ClassVar[RepeatedSteps | None] = None

    def set_up(self) -> None:
        """No optimizer has been wrapped yet."""
        super().set_up()
        self.optimizers: list[weakref.ref[Optimizer]] = []
        self._told = _ToldVariables()
        self.last_variables = LastVariables()
        again = self.repeated
        self.wrong_steps = WrongSteps(self)
        self.tape_rows = TapeRows(self.recorder, self.wrong_steps) if again is None else again.rows(self.recorder)
        self.broken_at_end = self.last_variables.not_finite

    # What users call.

    def wrap_optimizer(self, optimizer: T) -> T:
        """Save the gradients that a ``tf.compat.v1`` optimizer computes, or the variables of a Keras one; returns it.

        Anything else is left alone, and one line says so.
        """
        if is_a(optimizer, tf.compat.v1.train.Optimizer):
            self.watching.optimizers()
        elif all(attribute(optimizer, name) is not None for name in ("apply_gradients", "variables")):
            self.optimizers.append(Reference(cast("Optimizer", optimizer)))
        else:
            kind = type(optimizer).__name__
            guard.say_once(("wrap_optimizer", kind), f"a {kind} cannot be wrapped: nothing of it is saved")
        return optimizer

    def wrap_tape(self, tape: TapeT) -> TapeT:
        """Save the gradients that this ``tf.GradientTape`` computes; returns it.

        Not needed where the agent watches the program: then every tape is saved.
        """
        self.watching.tape(tape)
        return tape

    def add_to_collection(self, collection_name: str, variable: object) -> None:
        """Put a variable or tensor, or several of them, into a collection; see ``Collection.add``.

        A collection that is new is saved.
        """
        collection = self.get_collection(collection_name)
        assert isinstance(collection, Collection)
        collection.add(variable)
        self.selection.include(collection_name)
        self.selection.changed()

    def set_gradients(self, gradients: object = None, gradients_and_variables: Pairs | None = None) -> None:
        """Put gradients that a graph computes into the collection ``gradients``.

        Those of tapes, of ``fit`` and of optimizers are known without it, and eager ones are nothing but values.

        Args:
            gradients: tensors of a graph; several, or one.
            gradients_and_variables: what ``compute_gradients`` of an optimizer has given.
        """
        found = [gradient for gradient, _ in gradients_and_variables or ()]
        for gradient in tf.nest.flatten([gradients, found]):
            tensor = gradient.values if is_a(gradient, tf.IndexedSlices) else gradient
            if is_symbolic(tensor):
                self.recorder.place(CollectionKeys.GRADIENTS, tensor.name)

    def set_optimizer_variables(self, optimizer_variables: object) -> None:
        """Save variables of an optimizer, several or one, with those of the optimizers that are known.

        Those of a model's optimizer in ``fit`` are known without it.
        """
        self._told.add(variables_in(optimizer_variables))
        if all(known is not self._told.reference for known in self.optimizers):
            self.optimizers.append(self._told.reference)

    def keep_bundles(self, megabytes: int) -> None:
        """Note the first step whose loss is not finite, whatever the size; 0: it is not noted."""
        self.wrong_steps.wanted = megabytes > 0

    # What the core asks.

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        self.tape_rows.settle()
        super().finish(end_marker)

    def begin_anew(self) -> None:
        """Go on as a run of its own, in a process that a fork has made; the step that was open is its parent's."""
        self.tape_rows.drop()
        super().begin_anew()

    def to_array(self, value: object) -> Captured | None:
        """A tensor, a variable or a gradient of rows as an array that may share its memory."""
        return to_array(value)

    def worker(self) -> tuple[int, int]:
        """Rank and number of ranks of this process's job, as they are known when the first step is saved."""
        return rank_and_size()
