"""Watcher of GradientTape loops: it counts their steps and saves what the tapes compute.

Patched are ``GradientTape.__enter__`` (when a tape was opened) and ``GradientTape.gradient``, which every training loop
calls once for each loss. In a loop that runs eagerly its results are the values themselves. While a ``tf.function`` is
traced they are noted instead, and its calls are counted and saved by ``smd_agent.tensorflow.tape.compiled_step``.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function import transform

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import GRADIENTS, LOSS_FACTS, STEPS
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.loss_inputs import KnownLoss, LossLook
from smd_agent.framework.keras.optimizers import GivenVariables
from smd_agent.framework.plain_access import elements_of
from smd_agent.framework.replaced_functions import entrance, replace
from smd_agent.tensorflow import layer_calls, loss_calls
from smd_agent.tensorflow.graph.loss_graph import LossGraph
from smd_agent.tensorflow.graph.own_losses import own_loss_of
from smd_agent.tensorflow.graph.recorded_graph import Recording
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.loss_scaling import scale_of, unscaled
from smd_agent.tensorflow.optimizer_calls import OptimizerCall, listeners
from smd_agent.tensorflow.replicas import is_other_replica
from smd_agent.tensorflow.tape.compiled_step import SLOT, CompiledStep, TrainingFunctions
from smd_agent.tensorflow.tape.hook_for_tapes import Saving, TapeRun
from smd_agent.tensorflow.tape.model_calls import ModelCalled, ModelCalls
from smd_agent.tensorflow.tape.traced_gradients import (
    TapeNotes,
    flat_gradients,
    variables_behind,
    warn_if_hidden,
)
from smd_agent.tensorflow.types import ConcreteFunction, Function, Graph, Nested, Optimizer, Tape, Tensor, Variable
from smd_agent.tensorflow.variable_names import is_variable

OPENED = "_smd_agent_opened"

# Losses that are remembered until the next gradient, those of many that are computed in vain.
_LOSSES = 15
# Calls of ``gradient`` in a function of which the graph is looked through: some ask for each variable by itself.
_LOOKS = 8


class _Depth(threading.local):
    """Number of calls of ``gradient`` that this thread is in: what is recomputed on the way asks tapes of its own."""

    gradients = 0


class TapeWatch:
    """Sees every gradient that a tape computes; paused while another part of the hook counts the steps itself.

    Args:
        source: gives the hook to save with when the first gradient of a variable comes up.
    """

    def __init__(self, source: HookSource[TensorflowHook]) -> None:
        self._run = TapeRun(source)
        self._notes = TapeNotes()
        self._functions = TrainingFunctions()
        self._scaled: dict[int, tuple[Tensor, Tensor, Optimizer]] = {}
        # Of those computed since the last gradient; which step they are of is known with the next.
        self._losses_seen: list[tuple[KnownLoss, LossLook]] = []
        self._installed = self._looks_at_functions = False
        self._plain_tensors = False
        self._depth = _Depth()
        self._models = ModelCalls(self.awaits_loss, self._saw_model)
        self._recording = Recording()

    def install(self) -> None:
        """Begin to watch all tapes; called once."""
        tape = tf.GradientTape
        replace(tape, "__enter__", self._around_enter, why="a gradient belongs to the step its tape was opened in")
        replace(tape, "gradient", self._around_gradient, why="steps are counted by gradients, which are saved")
        self._watch_functions()
        self._installed = True

    def reason(self) -> str | None:
        """The reason why nothing of the program, which ends now, was captured, as far as it shows."""
        plain = self._plain_tensors and self._run.last is None
        return "gradients were computed, but of no tf.Variable" if plain else None

    def wrap_tape(self, tape: Tape) -> None:
        """Watch this one tape, for a program whose tapes are not all watched."""
        self._watch_functions()
        if not self._installed and OPENED not in tape.__dict__:
            # The program's own object, which takes this along when it goes.
            original = type(tape).gradient
            watched = functools.wraps(original)(entrance(original, self._around_gradient(original)))
            tape.__dict__["gradient"] = functools.partial(watched, tape)
            self._opened(tape)

    def _watch_functions(self) -> None:
        """Have functions that are traced from now on looked at, and calls of optimizers."""
        if not self._looks_at_functions:
            self._looks_at_functions = True
            transform.CONCRETE_FUNCTION_CALLBACKS.append(self._traced)
            listeners.append(self)
            loss_calls.listeners.append(self)
            layer_calls.listeners.append(self._models)

    def _around_enter(self, enter: Function) -> Function:
        opened = self._opened

        def entered(tape: Tape) -> Any:
            opened(tape)
            return enter(tape)

        return entered

    def _around_gradient(self, gradient: Function) -> Function:
        depth, recording = self._depth, self._recording

        def computed(tape: Tape, target: Nested, sources: Nested, *args: object, **kwargs: object) -> Nested:
            if not depth.gradients:
                recording.end()
            depth.gradients += 1
            try:
                result: Nested = gradient(tape, target, sources, *args, **kwargs)
            finally:
                depth.gradients -= 1
            if not depth.gradients:
                self._saw(tape, target, sources, result)
            return result

        return computed

    def _opened(self, tape: Tape) -> None:
        """A tape begins to record."""
        last = self._run.known()
        tape.__dict__[OPENED] = -1 if last is None else last.hook.position.step
        if tf.executing_eagerly():
            self._record()

    @LOSS_FACTS.fence("recording the operations of an eager step")
    def _record(self) -> None:
        if self._may_be_due() and not self._run.paused() and not is_other_replica():
            self._recording.begin()
        else:
            self._recording.forget()

    @STEPS.fence("watching a GradientTape", again=True)
    def _saw(self, tape: Tape, target: Nested, sources: Nested, gradients: Nested) -> None:
        """A tape has computed gradients."""
        if self._run.paused():
            return
        first = _first_variable(sources)
        if first is None or is_other_replica():
            self._plain_tensors = self._plain_tensors or first is None
            return
        if not tf.executing_eagerly():
            self._note(tf.compat.v1.get_default_graph(), tape, target, sources, gradients)
            return
        saving = self._run.current()
        if saving is None:
            return
        position = saving.hook.position
        saving.steps.reach(first, tape.__dict__.get(OPENED, position.step))
        # It has its place; asked again, it stays there.
        tape.__dict__[OPENED] = position.step - 1
        saving.rows.reached()
        if saving.rows.looks or position.saving:
            losses, scale = self._losses(target)
            saving.rows.differentiated(losses)
            if scale is not None:
                saving.rows.scaled(scale)
        if position.saving:
            pairs = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=False)
            found = [(s, unscaled(g, 1.0 if scale is None else scale)) for s, g in pairs if is_variable(s)]
            saving.values.weights([variable for variable, _ in found])
            saving.values.gradients(losses, found)
            saving.facts.saw_gradients(found)
            trained = [variable for variable, gradient in found if gradient is not None]
            self._look_behind(saving, tape, target, trained)
            for called in self._models.take(trained):
                saving.facts.saw_model(called, [tf.convert_to_tensor(one) for one in called.inputs])
            for seen in self._losses_seen:
                saving.facts.saw_loss(*seen)
        else:
            self._recording.forget()
        self._scaled.clear()
        self._losses_seen.clear()

    def _note(self, graph: Graph, tape: Tape, target: Nested, sources: Nested, gradients: Nested) -> None:
        """A tape has computed gradients in a function that is being traced."""
        self._notes.note_gradients(graph, target, sources, gradients)
        notes = self._notes.of(graph)
        if notes is not None and 0 < len(notes.calls) <= _LOOKS:
            pairs = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=False)
            trained = [one for one, gradient in pairs if gradient is not None and is_variable(one)]
            self._look_before(graph, tape, target, trained)

    @LOSS_FACTS.fence("looking at what a loss is computed of")
    def _look_before(self, graph: Graph, tape: Tape, target: Nested, trained: list[Variable]) -> None:
        before = LossGraph(graph, tf.nest.flatten(target), trained)
        self._notes.note_own_losses(graph, before)
        self._notes.note_behind(graph, before, trained, tf.GradientTape.watched_variables(tape))

    @LOSS_FACTS.fence("looking at what a loss is computed of")
    def _look_behind(self, saving: Saving, tape: Tape, target: Nested, trained: list[Variable]) -> None:
        graph = self._recording.end()
        if graph is None or not graph.is_whole or not saving.facts.wants_losses:
            return
        read = tf.GradientTape.watched_variables(tape)
        graph.connect(read)
        new = graph.new_of(tf.nest.flatten(target))
        if not new:
            return
        before = LossGraph(graph, new, trained)
        for one in before.targets:
            own = own_loss_of(before, one)
            saving.facts.saw_own_loss({} if own is None else own.facts_of({}))
        saving.facts.saw_behind(variables_behind(before, trained, read), self._notes.given)

    def _losses(self, target: Nested) -> tuple[list[object], float | None]:
        """The differentiated values as they were before scaling, and the scale of their gradients, if there is one."""
        losses: list[object] = []
        scale = None
        for tensor in tf.nest.flatten(target):
            note = self._scaled.get(id(tensor))
            if note is not None:
                _, tensor, optimizer = note
                scale = scale_of(optimizer)
            losses.append(tensor)
        return losses, scale

    @GRADIENTS.fence("noting a scaled loss")
    def scaled(self, optimizer: Optimizer, loss: Tensor, scaled: Tensor) -> None:
        """A loss was scaled."""
        if self._run.paused():
            return
        if not tf.executing_eagerly():
            self._notes.note_scaling(tf.compat.v1.get_default_graph(), optimizer, loss, scaled)
        elif self._may_be_due() or self._looks():
            # The scaled tensor is kept too, so that its id stays its own until the gradients have come.
            self._scaled[id(scaled)] = (scaled, loss, optimizer)

    def _may_be_due(self) -> bool:
        """True if the next step may be one that is saved."""
        last = self._run.known()
        return last is None or last.hook.position.train.step + 1 >= last.hook.position.train.due

    def _looks(self) -> bool:
        """True if the current step has a row of the series, and with it perhaps the next one."""
        return self._run.last is not None and self._run.last.rows.looks

    def _saw_model(self, call: ModelCalled) -> None:
        """A model is called in a function that is being traced."""
        self._notes.note_model(tf.compat.v1.get_default_graph(), call)

    # What losses are given, as their listener.

    def awaits_loss(self) -> bool:
        """True if a tape records, and a function is traced or a step may be saved."""
        if not record.could_possibly_record() or (tf.executing_eagerly() and not self._may_be_due()):
            return False
        return not self._run.paused() and not is_other_replica()

    @LOSS_FACTS.fence("looking at what a loss is given")
    def saw_loss(self, call: loss_calls.LossCall) -> None:
        """A loss has been computed."""
        if not tf.executing_eagerly():
            self._notes.note_loss(tf.compat.v1.get_default_graph(), call)
            return
        saving = self._run.current()
        if saving is not None and saving.hook.recorder.ever_saves(CollectionKeys.USAGE):
            self._losses_seen = [*self._losses_seen[-_LOSSES:], (call.kind, call.look())]

    # What optimizers are called with, as their listener.

    def awaits_update(self) -> bool:
        """True if a function is traced, or a step is saved or has a row of the series."""
        if tf.executing_eagerly() and not self._looks() and not self._saves():
            return False
        return not self._run.paused() and not is_other_replica()

    def _saves(self) -> bool:
        """True if the current step is saved."""
        return self._run.last is not None and self._run.last.hook.position.saving

    def before_update(self, call: OptimizerCall) -> None:
        """An optimizer is about to update."""
        if not tf.executing_eagerly():
            self._notes.note_update(tf.compat.v1.get_default_graph(), call)
        elif self._run.last is not None and self._saves():
            self._run.last.facts.before_update(_given(call))

    def saw_learning_rate(self, optimizer: Optimizer, value: Tensor) -> None:
        """The optimizer updates with this, which a schedule has given."""
        if not tf.executing_eagerly():
            self._notes.note_learning_rate(tf.compat.v1.get_default_graph(), optimizer, value)
        elif self._run.last is not None:
            self._run.last.rows.uses_rate(value)
            self._run.last.facts.saw_learning_rate(optimizer, value)

    def after_update(self, call: OptimizerCall, result: object) -> None:
        """The optimizer has updated."""
        if tf.executing_eagerly() and self._run.last is not None:
            self._models.forget()
            self._recording.forget()
            if self._saves():
                self._run.last.facts.after_update(_given(call))
            self._run.last.rows.updated(call.optimizer)

    @STEPS.fence("looking at a tf.function", again=True)
    def _traced(self, concrete: ConcreteFunction) -> None:
        if self._functions.names:
            warn_if_hidden(concrete.graph, self._functions.names)
        notes = self._notes.of(concrete.graph)
        if notes is None or not (notes.calls or notes.trains_inside):
            return
        self._notes.note_baked(concrete.graph)
        step = CompiledStep(self._run, self._notes, self._functions, concrete, notes)
        concrete.__dict__[SLOT] = step
        self._functions.add(concrete.function_def.signature.name, step)


def _given(call: OptimizerCall) -> GivenVariables:
    given = GivenVariables()
    given.add(*call)
    return given


def _first_variable(sources: Nested) -> Variable | None:
    first = next(iter(elements_of(sources)), None)
    if is_variable(first):
        return first
    return next((source for source in tf.nest.flatten(sources) if is_variable(source)), None)


_watches: list[TapeWatch] = []


def the_watch(source: HookSource[TensorflowHook] | None = None) -> TapeWatch:
    """The one watch of the process, made now if there is none.

    Args:
        source: for a new one; if None, it waits for the process's hook.
    """
    if not _watches:
        _watches.append(TapeWatch(source or HookSource(TensorflowHook)))
    return _watches[0]
