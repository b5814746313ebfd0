"""Notes on what the tapes of a function compute: taken while TensorFlow traces it, used when it runs.

Notes hold names, not tensors: a tensor would keep its graph alive.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.failure_domains import INPUTS, LOSS_FACTS, PARAMETERS, SETTINGS, UPDATES
from smd_agent.framework.keras.loss_inputs import TracedLoss
from smd_agent.framework.keras.optimizers import GivenVariables
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import Reference, WeakIdentityMap
from smd_agent.tensorflow.graph.function_rewrite import CALLS, Output, Tap, Unreachable, is_part, output_of
from smd_agent.tensorflow.graph.loss_graph import LossGraph, inner_variable
from smd_agent.tensorflow.graph.own_losses import OwnLoss, own_loss_of
from smd_agent.tensorflow.loss_calls import LossCall
from smd_agent.tensorflow.optimizer_calls import OptimizerCall
from smd_agent.tensorflow.tape.baked_values import BakedValue, baked_values
from smd_agent.tensorflow.tape.model_calls import ModelCalled
from smd_agent.tensorflow.types import Graph, Nested, Optimizer, Tensor, Variable
from smd_agent.tensorflow.variable_names import is_variable

# Models that are looked at in one function.
_MODELS = 8
_CONTROL_FLOW = ("WhileBodyFuncGraph", "WhileCondFuncGraph", "CondBranchFuncGraph")


@dataclass(frozen=True, eq=False)
class TracedGradient:
    """A variable's gradient in a traced function; ``indices`` only if it has rows."""

    variable: weakref.ref[Variable]
    values: Output
    indices: Output | None = None


@dataclass(frozen=True, eq=False)
class GradientCall:
    """One call of ``tape.gradient`` in a traced function: what was differentiated, and what came out.

    scaler: the optimizer that had scaled the loss; ``losses`` are those before that.
    """

    losses: tuple[Output, ...]
    parts: tuple[TracedGradient, ...]
    scaler: weakref.ref[Optimizer] | None = None

    def taps(self) -> Iterator[Tap]:
        """All values, losses first, then part by part."""
        outputs = list(self.losses)
        for part in self.parts:
            outputs.extend([part.values] if part.indices is None else [part.values, part.indices])
        for number, output in enumerate(outputs):
            yield Tap(TracedValue(self, number), output)


@dataclass(frozen=True, eq=False)
class TracedValue:
    """One value of a gradient call, by its number: what a tap of the function gives."""

    call: GradientCall
    number: int

    @property
    def is_loss(self) -> bool:
        """True if it was differentiated."""
        return self.number < len(self.call.losses)

    @property
    def fragile(self) -> bool:
        """Gradients are computed to be used outside of what XLA fuses."""
        return False


@dataclass(frozen=True, eq=False)
class TracedRate:
    """A learning rate that a schedule has given in a traced function: what a tap of the function gives."""

    optimizer: weakref.ref[Optimizer]

    @property
    def fragile(self) -> bool:
        """XLA fuses it into the update."""
        return True


@dataclass(frozen=True, eq=False)
class TracedLossCall:
    """A call of a loss in a traced function.

    loss: how it is set up, and what was known of it then.
    taps: what it was given, as far as that can be had.
    """

    loss: TracedLoss
    given: dict[str, Output]

    def taps(self) -> Iterator[Tap]:
        """The taps that it was given."""
        for part, output in self.given.items():
            yield Tap(TracedGiven(self, part), output)


@dataclass(frozen=True, eq=False)
class TracedGiven:
    """The values that a loss is given in a traced function: what a tap of the function gives.

    part: ``"predictions"``, ``"labels"`` or ``"result"``.
    """

    call: TracedLossCall
    part: str

    @property
    def fragile(self) -> bool:
        """XLA may fuse it into the loss."""
        return True


@dataclass(frozen=True, eq=False)
class TracedModelCall:
    """A call of a model in a traced function.

    call: it, without its inputs.
    inputs: what it was given; empty where a part of that cannot be had.
    """

    call: ModelCalled
    inputs: tuple[Output, ...]

    def taps(self) -> Iterator[Tap]:
        """The taps that it was given."""
        for number, output in enumerate(self.inputs):
            yield Tap(TracedInput(self, number), output)


@dataclass(frozen=True, eq=False)
class TracedInput:
    """An input of a model in a traced function, by its number: what a tap of the function gives."""

    of: TracedModelCall
    number: int

    @property
    def fragile(self) -> bool:
        """XLA may fuse what has made it."""
        return True


@dataclass
class FunctionNotes:
    """The notes on what the tapes of one graph compute.

    calls: of ``tape.gradient``.
    trains_inside: whether a function that trains is called in it.
    scaled: the loss before scaling, and the optimizer, by name of the scaled loss.
    given: the variables that optimizers are given in it.
    rates: what schedules give in it.
    models: of Keras that are called while a tape records.
    losses: of Keras that are computed then.
    own_losses: what its tapes differentiate, by name, as far as that compares anything.
    behind: variables that stand behind those that its tapes have found gradients for.
    baked: plain numbers of Python that it was traced with.
    """

    calls: list[GradientCall] = field(default_factory=list)
    trains_inside: bool = False
    scaled: dict[str, tuple[Output, weakref.ref[Optimizer]]] = field(default_factory=dict)
    given: GivenVariables = field(default_factory=GivenVariables)
    rates: list[Tap] = field(default_factory=list)
    models: list[TracedModelCall] = field(default_factory=list)
    losses: list[TracedLossCall] = field(default_factory=list)
    own_losses: dict[str, OwnLoss | None] = field(default_factory=dict)
    behind: list[weakref.ref[Variable]] = field(default_factory=list)
    baked: list[BakedValue] = field(default_factory=list)

    def taps(self) -> Iterator[Tap]:
        """All values that are to be had of it."""
        for call in self.calls:
            yield from call.taps()
        yield from self.rates
        for model in self.models:
            yield from model.taps()
        for loss in self.losses:
            yield from loss.taps()
        for own in self.own_losses.values():
            yield from () if own is None else own.taps()


class TapeNotes:
    """The notes on what the tapes of all functions compute, by graph; a graph that is gone is forgotten.

    Attributes:
        given: the variables that optimizers were given in any of them.
    """

    def __init__(self) -> None:
        self._notes: WeakIdentityMap[Graph, FunctionNotes] = WeakIdentityMap()
        self.given = GivenVariables()

    def of(self, graph: Graph) -> FunctionNotes | None:
        """The notes on a graph, None if there are none."""
        return self._notes.get(graph)

    def _on(self, graph: Graph) -> FunctionNotes:
        return self._notes.get(graph) or self._notes.set(graph, FunctionNotes())

    def note_gradients(self, graph: Graph, target: Nested, sources: Nested, gradients: Nested) -> None:
        """Note a call of ``tape.gradient`` under this graph."""
        if not is_function(graph):
            return
        parts = []
        try:
            for variable, gradient in zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=False):
                if gradient is None or not is_variable(variable):
                    continue
                if is_a(gradient, tf.IndexedSlices):
                    found = [output_of(gradient.values, graph), output_of(gradient.indices, graph)]
                else:
                    found = [output_of(gradient, graph)]
                parts.append(TracedGradient(Reference(variable), *found))
            losses, scaler = [], None
            scaled = self._on(graph).scaled
            for tensor in tf.nest.flatten(target):
                if is_part(tensor, graph):
                    unscaled, scaler = scaled.get(tensor.name, (None, scaler))
                    losses.append(unscaled or output_of(tensor, graph))
        except Unreachable as error:
            guard.say_once("unreachable", f"gradients of a tf.function are not saved: {error}")
            return
        if parts:
            call = GradientCall(tuple(losses), tuple(parts), scaler)
            self._on(graph).calls.append(call)

    @LOSS_FACTS.fence("looking at a loss that is not the framework's")
    def note_own_losses(self, graph: Graph, before: LossGraph) -> None:
        """Note what is differentiated under this graph."""
        own = self._on(graph).own_losses
        for target in before.targets:
            if target.name not in own:
                own[target.name] = own_loss_of(before, target)

    @PARAMETERS.fence("looking for variables that nothing trains")
    def note_behind(
        self, graph: Graph, before: LossGraph, trained: Sequence[Variable], read: Sequence[Variable]
    ) -> None:
        """Note the variables that stand behind those that are trained; see ``variables_behind``."""
        self._on(graph).behind.extend(map(Reference, variables_behind(before, trained, read)))

    @INPUTS.fence("looking at the models that are called")
    def note_model(self, graph: Graph, call: ModelCalled) -> None:
        """Note that a model is called under this graph."""
        if type(graph).__name__ in _CONTROL_FLOW or not _becomes_function(graph):
            return
        models = self._on(graph).models
        if all(known.call.title != call.title for known in models) and len(models) < _MODELS:
            inputs: tuple[Output, ...] = ()
            with contextlib.suppress(Unreachable):
                inside = {id(outside): inner for outside, inner in attribute(graph, "captures", ())}
                inputs = tuple(output_of(inside.get(id(tensor), tensor), graph) for tensor in call.inputs)
            models.append(TracedModelCall(replace(call, inputs=()), inputs))

    def note_loss(self, graph: Graph, call: LossCall) -> None:
        """Note what a loss is given under this graph."""
        if not is_function(graph):
            return
        given = {}
        for part, tensor in call.tensors().items():
            with contextlib.suppress(Unreachable):
                given[part] = output_of(tensor, graph)
        found = TracedLossCall(TracedLoss(call.kind, call.told()), given)
        self._on(graph).losses.append(found)

    def note_scaling(self, graph: Graph, optimizer: Optimizer, loss: Tensor, scaled: Tensor) -> None:
        """Note that a loss was scaled under this graph."""
        if not _becomes_function(graph):
            return
        if is_part(loss, graph) and is_part(scaled, graph):
            pair = (output_of(loss, graph), Reference(optimizer))
            self._on(graph).scaled[scaled.name] = pair

    @UPDATES.fence("looking at what an optimizer is given")
    def note_update(self, graph: Graph, call: OptimizerCall) -> None:
        """Note that an optimizer is called under this graph."""
        if not _becomes_function(graph):
            return
        self._on(graph).given.add(*call)
        self.given.add(*call)

    @SETTINGS.fence("looking at an optimizer's learning rate")
    def note_learning_rate(self, graph: Graph, optimizer: Optimizer, value: Tensor) -> None:
        """Note what a schedule gives under this graph."""
        if _becomes_function(graph) and is_part(value, graph):
            tap = Tap(TracedRate(Reference(optimizer)), output_of(value, graph))
            self._on(graph).rates.append(tap)

    @LOSS_FACTS.fence("looking at the numbers that a tf.function was traced with")
    def note_baked(self, graph: Graph) -> None:
        """Note the plain numbers that a function has just been traced with."""
        notes = self._on(graph)
        losses = [loss.ref.partition(":")[0] for call in notes.calls for loss in call.losses]
        trained = [one for call in notes.calls for part in call.parts if (one := part.variable()) is not None]
        notes.baked = baked_values(graph, losses, trained)

    def note_inner_call(self, graph: Graph) -> None:
        """Note that a function which trains is called under this graph."""
        if is_function(graph):
            self._on(graph).trains_inside = True


def variables_behind(before: LossGraph, trained: Sequence[Variable], read: Sequence[Variable]) -> list[Variable]:
    """The variables that stand behind those that are trained, and were made later than one of them.

    Args:
        before: what stands before the losses.
        trained: the variables that a tape has found gradients for.
        read: all that it has seen, in the order in which they were made.
    """
    own = {id(inner_variable(variable)) for variable in trained}
    first = next((number for number, variable in enumerate(read) if id(variable) in own), len(read))
    return before.behind([variable for variable in read[first:] if id(variable) not in own])


def flat_gradients(gradients: Nested) -> list[Any]:
    """Gradients one by one; rows stay together, and a None stands for itself."""
    return list(tf.nest.flatten(gradients, expand_composites=False))


def is_function(graph: Graph) -> bool:
    """True if the graph becomes a function that is called as a whole; one line if training is out of reach there."""
    if type(graph).__name__ in _CONTROL_FLOW:
        _say_out_of_reach()
        return False
    return _becomes_function(graph)


def _becomes_function(graph: Graph) -> bool:
    """True if the graph is that of a function, a branch or a loop, and none that a session runs."""
    return is_a(graph, tf.__internal__.FuncGraph)


def warn_if_hidden(graph: Graph, training: Container[str]) -> None:
    """Say so if a graph runs a function that trains in any other way than calling it: a loop over a dataset does."""
    for operation in graph.get_operations():
        if operation.type in CALLS:
            continue
        for argument in operation.op_def.attr:
            if argument.type == "func" and operation.get_attr(argument.name).name in training:
                _say_out_of_reach()
                return


def _say_out_of_reach() -> None:
    guard.say_once(
        "control flow",
        "gradients taken in a loop or branch that tf.function compiled cannot be saved"
        " (a for, while or if over tensors or a dataset): call the tf.function once for each step",
    )
