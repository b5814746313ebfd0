"""Facts of a step with tapes: how far variables have moved, with which settings, and what is known of them.

What is told of its variables is of those that tapes have differentiated or optimizers were given, whatever models they
belong to, and of those that stand behind them and are left out.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smd_agent.core.collection_keys import FACT_COLLECTIONS, CollectionKeys
from smd_agent.core.failure_domains import INPUTS, LOSS_FACTS, PARAMETERS, SETTINGS, UPDATES
from smd_agent.core.recorder import Recorder
from smd_agent.framework.keras.facts import FactsSaver, StepFacts
from smd_agent.framework.keras.loss_inputs import LOSS, KnownLoss, LossLook, LossNumbers
from smd_agent.framework.keras.optimizers import GivenVariables
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.loss_facts import CALLS
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.training_facts import BEHIND
from smd_agent.framework.weak_references import Reference
from smd_agent.tensorflow.fact_adapters import Look
from smd_agent.tensorflow.tape.baked_values import BakedValue
from smd_agent.tensorflow.tape.left_variables import LeftVariables
from smd_agent.tensorflow.tape.model_calls import ModelCalled
from smd_agent.tensorflow.types import Variable

TITLE = "variables"
"""Stands for the model in the name of what is told of variables."""

TRACED = "python_number/"
"""What is told of a plain number that a function was traced with, before its name."""

_OF_MODELS = [CollectionKeys.INPUTS, CollectionKeys.OUTPUTS, CollectionKeys.LAYERS, CollectionKeys.INPUT_DIGESTS]
_OF_OPTIMIZERS = [CollectionKeys.UPDATES, CollectionKeys.OPTIMIZER, CollectionKeys.PARAMETERS]
_NO_MODEL = "of a loop with a GradientTape only models of Keras's are known, and no layers"
_NO_OPTIMIZER = "no optimizer of Keras's was called"
_OTHER_LOSSES = (
    "of a loop with a GradientTape it is known where a loss of Keras's is called as an object, or the loss compares"
    " two tensors"
)
_NOT_WRAPPED = "of a loop with a GradientTape they are those of optimizers that hook.wrap_optimizer is given"


class _Step(StepFacts):
    """The facts of the step that is open, with the variables that have come up in it.

    Attributes:
        variables: their names and themselves, by identity; weakly, because the step stays open until the next begins.
        differentiated: ids of those that a tape has found a gradient for.
        losses: what they were given.
        own_losses: how many have been differentiated.
        baked: names of plain numbers that functions were traced with, those that are told.
        behind: variables that stand behind those that are trained, of TensorFlow's.
        given_in_functions: the variables that optimizers are given in any function that was traced.
    """

    def __init__(self, saver: FactsSaver, ever: GivenVariables) -> None:
        super().__init__(saver, Look(), ever)
        self.variables: dict[int, tuple[str, weakref.ref[Variable]]] = {}
        self.differentiated: set[int] = set()
        self.losses = LossNumbers(self.usage, saver.loss_guesses, self.images)
        self.own_losses = 0
        self.baked: set[str] = set()
        self.behind: list[Variable] = []
        self.given_in_functions = GivenVariables()


class TapeFacts:
    """The facts of the steps of one hook; those of the current one are complete when it closes.

    Args:
        saver: takes them.
        recorder: of the same hook; it closes the steps.
        name: gives a variable's name in the run.
    """

    def __init__(self, saver: FactsSaver, recorder: Recorder, name: Callable[[Variable], str]) -> None:
        self._saver = saver
        self._recorder = recorder
        self._name = name
        self._ever = GivenVariables()
        self._left = LeftVariables(Look().sample)
        self._number = -1
        self._step: _Step | None = None
        recorder.cannot_have(_OF_MODELS, _NO_MODEL)
        recorder.cannot_have([CollectionKeys.USAGE], _OTHER_LOSSES)

    def saw_gradients(self, pairs: Iterable[tuple[Variable, object]]) -> None:
        """Tapes have computed gradients of variables, of which some are None."""
        step = self._current()
        if step is not None:
            for variable, gradient in pairs:
                self._add(step, [variable])
                if gradient is not None:
                    step.differentiated.add(id(variable))

    @property
    def wants_losses(self) -> bool:
        """True if the current step saves facts of losses, or of variables."""
        step = self._current()
        return step is not None and (step.usage.wanted_in_training or self._wants_variables())

    @INPUTS.fence("looking at the models that are called")
    def saw_model(self, call: ModelCalled, inputs: Sequence[Any]) -> None:
        """A model that the step trains has been called with these tensors; none where they are not known."""
        step, model = self._current(), call.model()
        if step is not None and model is not None:
            step.usage.place = lambda: call.line
            if inputs:
                step.before_call(call.title, model, inputs)
            step.after_call(call.title, call.modes)

    @LOSS_FACTS.fence("saving what a loss was given")
    def saw_loss(self, kind: KnownLoss, look: LossLook) -> None:
        """A loss has been computed while a tape recorded."""
        step = self._current()
        if step is not None:
            step.losses.saw(kind, look)

    @LOSS_FACTS.fence("saving what a loss compares")
    def saw_own_loss(self, numbers: Mapping[str, float]) -> None:
        """A function has worked out a loss of which these facts are known."""
        step = self._current()
        if step is None or not step.usage.wanted_in_training or step.own_losses >= CALLS:
            return
        if numbers:
            step.usage.save(f"{LOSS}own_loss_{step.own_losses}", numbers)
        step.own_losses += 1

    @LOSS_FACTS.fence("looking at the numbers that a tf.function was traced with")
    def saw_baked(self, values: Iterable[BakedValue]) -> None:
        """A function has run that was traced with these plain numbers of Python."""
        step = self._current()
        if step is None or not step.usage.wanted_in_training:
            return
        place = step.usage.place
        for value in values:
            read, now = value.read, value.read.now()
            if now is not None and read.name not in step.baked:
                step.baked.add(read.name)
                step.usage.place = functools.partial(str, value.line)
                step.usage.save(f"{TRACED}{read.name}", {"traced": read.value, "now": now}, here=True)
        step.usage.place = place

    @PARAMETERS.fence("looking for variables that nothing trains")
    def saw_behind(self, variables: Iterable[Variable], given: GivenVariables) -> None:
        """A function has run in which variables stand behind those that are trained.

        Args:
            variables: these.
            given: what optimizers are given in any function, known by the end of the step.
        """
        step = self._current()
        if step is not None:
            step.behind.extend(variables)
            step.given_in_functions = given

    @UPDATES.fence("looking at what an optimizer is given")
    def before_update(self, given: GivenVariables) -> None:
        """Optimizers are about to update variables."""
        step = self._current()
        if step is not None:
            self._ever.update(given)
            if given:
                self._recorder.cannot_have([CollectionKeys.OPTIMIZER_VARIABLES], _NOT_WRAPPED)
            step.given.update(given)
            variables = given.variables()
            self._add(step, variables)
            step.before_update(variables)
            step.before_optimizers(given.optimizers())

    @SETTINGS.fence("looking at an optimizer's learning rate")
    def saw_learning_rate(self, optimizer: object, value: object) -> None:
        """An optimizer has updated with this learning rate."""
        step = self._current()
        if step is not None:
            step.saw_learning_rate(title_of(optimizer), value)

    @UPDATES.fence("saving facts of a step")
    def after_update(self, given: GivenVariables) -> None:
        """The updates have changed the variables."""
        step = self._current()
        if step is not None:
            step.after_update(given.variables())
            step.after_optimizers(given.optimizers())

    @PARAMETERS.fence("saving what is known of variables")
    def close(self) -> None:
        """The step ends."""
        step, self._step = self._step, None
        if step is not None:
            known = [(name, variable) for name, found in step.variables.values() if (variable := found()) is not None]
            left = [variable for variable in self._left_in(step) if id(variable) not in step.differentiated]
            known += [(self._name(variable), variable) for variable in left if id(variable) not in step.variables]
            variables: list[Any] = [variable for _, variable in known]
            trainable = [variable for variable in variables if attribute(variable, "trainable", True)]
            names, behind = [name for name, _ in known], {id(variable) for variable in left}
            step.tell_of_variables(TITLE, names, variables, trainable, step.differentiated, {BEHIND: behind})
            step.close()
            if not self._ever:
                names = [*_OF_OPTIMIZERS, CollectionKeys.OPTIMIZER_VARIABLES]
                self._recorder.cannot_have(names, _NO_OPTIMIZER)

    def drop(self) -> None:
        """Nothing more is saved of the step."""
        self._step = None

    def _left_in(self, step: _Step) -> list[Variable]:
        """The variables that stand behind those that are trained, and that nothing has trained so far."""
        if not step.behind or not self._wants_variables():
            return []
        given = [*step.given_in_functions.variables(), *self._ever.variables()]
        return self._left.still(self._number, step.behind, given)

    def _wants_variables(self) -> bool:
        return CollectionKeys.PARAMETERS in self._recorder.collections_due()

    def _current(self) -> _Step | None:
        """The facts of the current step; None if it saves none."""
        recorder = self._recorder
        if self._number != recorder.position.step:
            self._number = recorder.position.step
            self._step = None
            if not FACT_COLLECTIONS.isdisjoint(recorder.collections_due()):
                self._step = _Step(self._saver, self._ever)
                recorder.capture = self
        return self._step

    def _add(self, step: _Step, variables: Sequence[Variable]) -> None:
        new = [variable for variable in variables if id(variable) not in step.variables]
        names = [self._name(variable) for variable in new]
        for name, variable in zip(names, new, strict=True):
            step.variables[id(variable)] = name, Reference(variable)
        step.add(names, new)
