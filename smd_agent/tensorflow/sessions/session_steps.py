"""Sessions: each ``run`` that trains is a step; a saved step fetches what it wants along with what the user fetches.

Only what the user's own fetches need anyway is fetched, so nothing else is computed and no placeholder is missed.
Variables are read in a run of their own just before: within the same run they would race with their update.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import tensorflow as tf

from smd_agent.core.clock import ModeClock
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.modes import ModeKeys
from smd_agent.core.selection import Selection
from smd_agent.framework.keras.facts import FactsSaver
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.training_facts import OPTIMIZER
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.tensorflow.arrays import Rows
from smd_agent.tensorflow.sessions.graph_notes import GraphNotes, OptimizerNotes, notes_on
from smd_agent.tensorflow.sessions.run_facts import RunFacts
from smd_agent.tensorflow.types import Graph, Nested, Operation, RunContext, RunValues, Tensor, Variable

_UNREADABLE = (tf.resource, tf.variant)

_OF_LOOPS = [
    CollectionKeys.INPUTS,
    CollectionKeys.OUTPUTS,
    CollectionKeys.LAYERS,
    CollectionKeys.INPUT_DIGESTS,
    CollectionKeys.USAGE,
]
_IN_A_GRAPH = "of a graph that a session runs they are not known"
_OF_OPTIMIZERS = [CollectionKeys.UPDATES, CollectionKeys.OPTIMIZER, CollectionKeys.PARAMETERS]
_OF_ITS_OWN = "of a graph that a session runs they are those of optimizers of tf.compat.v1"

# What feature columns compute with variables that are called so.
_ABOUT_WEIGHTS = "weights/"


@dataclass(frozen=True)
class Needed:
    """The values that are to be saved in runs of the same fetches.

    trains: whether an optimizer's update is part of them.
    tensors: what can be fetched along, by the name it is saved under; values and indices of a gradient with rows.
    shapes: shapes of gradients with rows.
    optimizers: those of which an update is part of them.
    """

    trains: bool
    tensors: dict[str, tuple[Tensor, ...]]
    shapes: dict[str, tuple[int, ...]]
    optimizers: list[OptimizerNotes]


class RunCounter(FactsSaver, Protocol):
    """Counts the runs of sessions as steps, and has what takes their values."""

    @property
    def selection(self) -> Selection:
        """The tensors that are saved."""

    def next_step(self, clock: ModeClock) -> None:
        """Begin the next step."""


@dataclass(frozen=True)
class _Pending:
    """A run that is about to be saved.

    weights: variables as they were before it, by name.
    facts: of it; None of one that does not train.
    """

    weights: dict[str, Any]
    facts: RunFacts | None


class SessionRun(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Counts and saves the runs of one session."""

    def __init__(self, counter: RunCounter) -> None:
        self._counter = counter
        self._recorder = counter.recorder
        self._roles = ParameterRoles(counter.selection)
        self._graph: Any = None
        self._variables: dict[str, Variable] = {}
        self._known: dict[Any, Needed] = {}
        self._pending: _Pending | None = None
        self._clock: ModeClock | None = None

    # What a session calls.

    @STEPS.fence("looking at a graph", again=True)
    def begin(self) -> None:
        """The graph is complete but for what other hooks add."""
        self._graph = tf.compat.v1.get_default_graph()
        self._recorder.cannot_have(_OF_LOOPS, _IN_A_GRAPH)
        self._recorder.cannot_have(_OF_OPTIMIZERS, _OF_ITS_OWN)
        self._known.clear()
        self._variables = {}
        notes = notes_on(self._graph)
        for variable in tf.compat.v1.trainable_variables():
            self._variables[variable.name] = variable
            self._recorder.place("biases" if "bias" in variable.name else "weights", variable.name)
        for variable in tf.compat.v1.global_variables():
            if variable.name in notes.optimizer_variables:
                self._variables[variable.name] = variable
                self._recorder.place("optimizer_variables", variable.name)
                self._keep_out([variable.name])
        for name in _losses(self._graph, notes):
            self._recorder.place("losses", name)
        for names in notes.gradients.values():
            self._recorder.place("gradients", names[0])

    def before_run(self, run_context: RunContext) -> Any:
        """A run is about to start: ask for more if it is to be saved."""
        return self._ask(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """A run has succeeded: it was a step."""
        self._take(run_context, run_values.results)

    @STEPS.fence("preparing a session's run", again=True)
    def _ask(self, run_context: RunContext) -> Any:
        self._pending = None
        arguments = run_context.original_args
        needed = self._needed(arguments.fetches, arguments.feed_dict or {})
        self._clock = clock = self._clock_of(needed)
        # Counted when it has succeeded: the run at the end of the data is no step.
        if clock is None or clock.step + 1 < clock.due:
            return None
        wants = self._recorder.next_step_wants(clock)
        variables = {name: variable for name, variable in self._variables.items() if wants(name)}
        facts = RunFacts(self._graph, needed.optimizers, wants) if needed.trains else None
        read = {**variables, **(facts.variables if facts else {})}
        values = run_context.session.run(read) if read else {}
        if facts is not None:
            facts.before(values)
        self._pending = _Pending({name: values[name] for name in variables}, facts)
        wanted = {name: parts for name, parts in needed.tensors.items() if name not in variables and wants(name)}
        return tf.compat.v1.train.SessionRunArgs(wanted) if wanted else None

    @STEPS.fence("saving a session's run")
    def _take(self, run_context: RunContext, results: Any) -> None:
        clock = self._clock
        if clock is None:
            return
        self._counter.next_step(clock)
        # The run is over.
        self._recorder.position.updated = True
        if self._pending is None or not self._recorder.position.saving:
            return
        pending = self._pending
        values = dict(pending.weights)
        for name, parts in (results or {}).items():
            values[name] = Rows(parts[0], parts[1], self._shapes[name]) if len(parts) == 2 else parts[0]
        self._recorder.save_tensors(list(values), list(values.values()))
        if pending.facts is not None:
            pending.facts.save(self._counter, run_context.session)

    # What a run computes.

    def _clock_of(self, needed: Needed) -> ModeClock | None:
        """The clock that counts a run; None if it is no step."""
        notes = notes_on(self._graph)
        if needed.trains:
            return self._recorder.clock_for(ModeKeys.TRAIN)
        if notes.updates and notes.mode in (None, ModeKeys.TRAIN):
            # Something else is looked up between the steps. An estimator's evaluation may have updates it does not run.
            return None
        return self._recorder.clock_for(notes.mode or ModeKeys.EVAL)

    def _needed(self, fetches: Nested, feeds: Mapping[Any, object]) -> Needed:
        key = (_key(fetches), _key(list(feeds)))
        needed = self._known.get(key)
        if needed is None:
            needed = self._known[key] = self._look(fetches, list(feeds))
        return needed

    def _look(self, fetches: Nested, feeds: list[object]) -> Needed:
        notes = notes_on(self._graph)
        # What stands behind a value that is fed is not computed, and may lack its placeholders.
        fed = {tensor.name for tensor in _elements(self._graph, feeds)}
        operations = _ancestors([attribute(t, "op", t) for t in _elements(self._graph, fetches)], fed)
        names = {operation.name for operation in operations}
        operations += _losses_within_reach(self._graph, notes, names)
        tensors: dict[str, tuple[Tensor, ...]] = {}
        shapes = {}
        for operation in operations:
            for tensor in operation.outputs:
                if tensor.dtype.base_dtype not in _UNREADABLE and self._graph.is_fetchable(tensor):
                    tensors[tensor.name] = (tensor,)
        for variable, parts in notes.gradients.items():
            if len(parts) == 2 and all(part in tensors for part in parts):
                tensors[parts[0]] = (*tensors[parts[0]], *tensors[parts[1]])
                shapes[parts[0]] = _shape_of(self._graph, variable)
        optimizers = [optimizer for optimizer in notes.optimizers if optimizer.updates & names]
        for optimizer in optimizers:
            settings = {f"{OPTIMIZER}{title_of(optimizer)}/{key}": name for key, name in optimizer.settings.items()}
            tensors.update((setting, tensors[name]) for setting, name in settings.items() if name in tensors)
        self._keep_out(name for name in tensors if name not in self._variables)
        return Needed(bool(notes.updates & names), tensors, shapes, optimizers)

    def _keep_out(self, names: Iterable[str]) -> None:
        self._roles.keep_out(name for name in names if _ABOUT_WEIGHTS in name)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: shape for needed in self._known.values() for name, shape in needed.shapes.items()}


def _shape_of(graph: Graph, variable: str) -> tuple[int, ...]:
    for found in graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
        if found.name == variable:
            return tuple(found.shape)
    return ()


def _key(fetches: Nested) -> tuple[str | int, ...]:
    # A graph's tensors live as long as the graph, so their ids stay theirs; structures are made anew for each run.
    return tuple(part if type(part) is str else id(part) for part in tf.nest.flatten(fetches))


def _elements(graph: Graph, structure: Nested) -> list[Any]:
    """Tensors and operations that stand behind what can be fetched or fed."""
    found = []
    for part in tf.nest.flatten(structure, expand_composites=True):
        if part is None:
            continue
        try:
            found.append(graph.as_graph_element(part))
        except (TypeError, ValueError, KeyError):
            # The session has something to say about it.
            continue
    return found


def _losses(graph: Graph, notes: GraphNotes) -> list[str]:
    """Names of the losses; where one is known, without those of each example that it is the sum of."""
    with graph.as_default():
        added = tf.compat.v1.losses.get_losses()
    whole = [loss.name for loss in added if loss.shape.rank == 0 or not notes.losses]
    return [*dict.fromkeys((*notes.losses, *whole))]


def _losses_within_reach(graph: Graph, notes: GraphNotes, computed: Container[str]) -> list[Operation]:
    """Losses that an update does without, but that follow from what it computes by operations without any state.

    A gradient seldom needs the loss itself. An operation with state could race with the update, draw random numbers or
    take the next batch.
    """
    found: list[Operation] = []
    for name in _losses(graph, notes):
        loss = graph.get_tensor_by_name(name).op
        new = [operation for operation in _ancestors([loss], (), computed) if operation.name not in computed]
        if all(_is_pure(operation) for operation in new):
            found.extend(operation for operation in new if operation is loss)
    return found


def _is_pure(operation: Operation) -> bool:
    reads_in_place = any(tensor.dtype.name.endswith("_ref") for tensor in operation.inputs)
    return not (operation.op_def.is_stateful or operation.type.startswith("Placeholder") or reads_in_place)


def _ancestors(operations: Iterable[Operation], fed: Container[str], known: Container[str] = ()) -> list[Operation]:
    """The operations and all they depend on, each once; what is behind known ones is left out."""
    seen: dict[int, Operation] = {}
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if id(operation) in seen:
            continue
        seen[id(operation)] = operation
        if operation.name in known:
            continue
        waiting.extend(tensor.op for tensor in operation.inputs if tensor.name not in fed)
        waiting.extend(operation.control_inputs)
    return list(seen.values())
