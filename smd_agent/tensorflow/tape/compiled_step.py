"""Steps inside a ``tf.function``: counted where Python calls it, saved through a variant that returns more.

TensorFlow announces every function it has traced (``transform.CONCRETE_FUNCTION_CALLBACKS``, 2.13 to 2.21). One in
which a tape was asked for gradients gets a counter in front of its ``_call_flat``, which every way of calling it goes
through; no other function is touched.

A stateful random operation (``tf.random.normal``, ``tf.nn.dropout``; Keras' layers keep their state in variables) has a
sequence of its own in each function, so the variant of its function would draw other numbers. So that the program draws
the same numbers as without us, the variant then runs in every step, from the first.
"""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context, record

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.keras.optimizers import GivenVariables
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_rows import fence
from smd_agent.framework.weak_references import Reference
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.tensorflow.arrays import Rows
from smd_agent.tensorflow.graph.error_messages import ToldAsOf
from smd_agent.tensorflow.graph.function_rewrite import CALLS, UNREADABLE, Tap, Unreachable, Variant, carries_state
from smd_agent.tensorflow.graph.own_losses import TracedSide
from smd_agent.tensorflow.loss_calls import given as given_to
from smd_agent.tensorflow.loss_scaling import scale_of, unscaled
from smd_agent.tensorflow.tape.hook_for_tapes import Saving, TapeRun
from smd_agent.tensorflow.tape.model_calls import trained_among
from smd_agent.tensorflow.tape.returned_losses import ReturnedLosses
from smd_agent.tensorflow.tape.traced_gradients import (
    FunctionNotes,
    GradientCall,
    TapeNotes,
    TracedGiven,
    TracedGradient,
    TracedInput,
    TracedRate,
    TracedValue,
)
from smd_agent.tensorflow.tape_rows import TapeRows
from smd_agent.tensorflow.types import ConcreteFunction, FunctionDef, Tensor, Variable

SLOT = "_call_flat"

# Running statistics of normalisations, which tell whether these are trained or only used.
_STATISTICS = re.compile(r"(^|/)moving_(mean|variance)(_\d+)?(:0)?$")


class CompiledStep:
    """Stands in front of one compiled function that trains.

    It does not own the function: a cycle would keep it until the garbage collector runs.

    Args:
        run: what its steps are saved with.
        notes: told of calls within functions that are being traced.
        functions: all functions that train.
        concrete: the function.
        own: what its own tapes were asked for, and the like; what is of functions that it calls is looked up.

    Attributes:
        own: the same.
    """

    def __init__(
        self,
        run: TapeRun,
        notes: TapeNotes,
        functions: TrainingFunctions,
        concrete: ConcreteFunction,
        own: FunctionNotes,
    ) -> None:
        self.own = own
        self._run = run
        self._notes = notes
        self._functions = functions
        self._concrete = weakref.ref(concrete)
        self._variables: list[weakref.ref[Variable]] = []
        self._statistics: list[weakref.ref[Variable]] = []
        self._variant: Variant | None = None
        self._tried = False
        self._always = False

    @unseen
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on its flat inputs, as it is or through its variant."""
        concrete: Any = self._concrete()
        try:
            call = type(concrete)._call_flat
            if self._run.paused():
                return call(concrete, *args, **kwargs)
            if record.could_possibly_record():
                # What such a tape needs of the function is not what we would run. Its own gradients are seen elsewhere.
                guard.say_once(
                    "outer tape",
                    "what a tf.function that trains computes is not saved where another tape records its call",
                )
                return call(concrete, *args, **kwargs)
            if not tf.executing_eagerly():
                self._notes.note_inner_call(tf.compat.v1.get_default_graph())
                return call(concrete, *args, **kwargs)
            saved = self._open_step()
            if saved is None or (not saved and not self._always):
                result = call(concrete, *args, **kwargs)
                self._tell(result)
                return result
            return self._run_variant(concrete, saved, *args, **kwargs)
        except BaseException as error:
            instead = own_failure(error)
            if instead is None:
                raise
        return instead.of(type(concrete)._call_flat, concrete, *args, **kwargs)

    @STEPS.fence("counting a step of a tf.function", again=True)
    def _open_step(self) -> bool | None:
        """Count the call, and save the weights if it is saved; None if the function has to run as it is."""
        saving = self._run.current()
        if saving is None:
            return None
        position = saving.hook.position
        if not self._variables:
            self._look()
        first = self._variables[0]() if self._variables else None
        if first is None:
            living = self._living_variables()
            if not living:
                return None
            first = living[0]
        saving.steps.reach(first, position.step)
        saving.rows.reached()
        if saving.rows.looks:
            self._tell_scale(saving.rows)
        if position.saving:
            saving.values.weights([*self._living_variables(), *_living(self._statistics)])
        elif not self._always:
            return False
        return position.saving if self.variant() is not None else None

    def _look(self) -> None:
        """Find out what it trains."""
        concrete: Any = self._concrete()
        parts = {id(v): part for call in self.calls for part in call.parts if (v := part.variable()) is not None}
        self._variables = [part.variable for part in parts.values()]
        statistics = [variable for variable in concrete.variables if _STATISTICS.search(variable.name)]
        self._statistics = [Reference(variable) for variable in statistics]
        self._always = carries_state(concrete.function_def)

    def _living_variables(self) -> list[Variable]:
        return _living(self._variables)

    @unseen
    def _run_variant(
        self,
        concrete: ConcreteFunction,
        saved: bool,
        tensor_inputs: Sequence[Tensor],
        captured_inputs: Sequence[Tensor],
    ) -> Any:
        variant = self._variant
        assert variant is not None
        # The step may change them.
        scales = self._before() if saved else None
        with ToldAsOf(concrete):
            outputs, extra = variant.call([*tensor_inputs, *captured_inputs])
            result = concrete.function_type.pack_output(outputs)
        if scales is not None:
            self._save(extra, scales)
        self._tell(result, extra)
        return result

    @fence("looking at what a tf.function has computed")
    def _tell(self, result: Any, extra: Sequence[Tensor] = ()) -> None:
        """The function has returned this, or its variant has, with further values."""
        saving = self._run.last
        if saving is None or not saving.rows.looks:
            return
        further = () if self._variant is None else self._variant.further
        pairs = [*zip((one.key for one in further), extra, strict=False)]
        losses = [value for key, value in pairs if is_a(key, TracedValue) and key.is_loss]
        saving.rows.computed(self.returned.of(result, losses))
        for key, value in pairs:
            if isinstance(key, TracedRate):
                saving.rows.uses_rate(value)
        for optimizer in self.given.optimizers():
            saving.rows.updated(optimizer)

    @STEPS.fence("saving what a tf.function computed")
    def _save(self, extra: list[Tensor], scales: list[float]) -> None:
        saving = self._run.last
        assert saving is not None
        assert self._variant is not None
        pairs = [*zip((one.key for one in self._variant.further), extra, strict=True)]
        for key, value in pairs:
            optimizer = key.optimizer() if isinstance(key, TracedRate) else None
            if optimizer is not None:
                saving.facts.saw_learning_rate(optimizer, value)
        # Losses are compared with what models were given.
        self._save_models(saving, {key: value for key, value in pairs if isinstance(key, TracedInput)})
        self._save_losses(saving, {key: value for key, value in pairs if isinstance(key, TracedGiven)})
        self._save_own_losses(saving, {key: value for key, value in pairs if isinstance(key, TracedSide)})
        values = iter([value for key, value in pairs if isinstance(key, TracedValue)])
        for call, scale in zip(self.calls, scales, strict=True):
            losses = [next(values) for _ in call.losses]
            parts = [(part.variable(), unscaled(_gradient(part, values), scale)) for part in call.parts]
            found = [(v, g) for v, g in parts if v is not None]
            saving.values.gradients(losses, found)
            saving.facts.saw_gradients(found)
        saving.facts.after_update(self.given)

    def _save_models(self, saving: Saving, given: Mapping[TracedInput, Tensor]) -> None:
        models = [model for step in self._functions.steps_in(self._definition()) for model in step.own.models]
        trained = {*trained_among((model.call for model in models), self._living_variables())} if models else ()
        for model in models:
            if model.call in trained:
                values = {key.number: value for key, value in given.items() if key.of is model}
                inputs = [values[number] for number in range(len(model.inputs)) if number in values]
                whole = len(inputs) == len(model.inputs)
                saving.facts.saw_model(model.call, inputs if whole else ())

    def _save_losses(self, saving: Saving, given: Mapping[TracedGiven, Tensor]) -> None:
        for step in self._functions.steps_in(self._definition()):
            for call in step.own.losses:
                seen = {key.part: value for key, value in given.items() if key.call is call}
                loss = call.loss
                saving.facts.saw_loss(loss.kind, loss.kind.look(loss.numbers, given_to(**seen)))

    def _save_own_losses(self, saving: Saving, sides: Mapping[TracedSide, Tensor]) -> None:
        for step in self._functions.steps_in(self._definition()):
            for loss in step.own.own_losses.values():
                saving.facts.saw_own_loss({} if loss is None else loss.facts_in(sides))
            saving.facts.saw_behind(_living(step.own.behind), self._notes.given)
            saving.facts.saw_baked(step.own.baked)

    @STEPS.fence("reading what a tf.function changes")
    def _before(self) -> list[float]:
        saving = self._run.last
        assert saving is not None
        saving.facts.before_update(self.given)
        scalers = [None if call.scaler is None else call.scaler() for call in self.calls]
        return [1.0 if scaler is None else scale_of(scaler) for scaler in scalers]

    @fence("looking at the scale of a loss")
    def _tell_scale(self, rows: TapeRows) -> None:
        for call in self.calls:
            scaler = None if call.scaler is None else call.scaler()
            if scaler is not None:
                rows.scaled(scale_of(scaler))

    # What the function computes.

    @functools.cached_property
    def calls(self) -> list[GradientCall]:
        """Its gradient calls and those of the functions it calls, in the order of its variant's further values."""
        return [*self._functions.calls_in(self._definition())]

    @functools.cached_property
    def given(self) -> GivenVariables:
        """The variables that optimizers are given in it and in the functions it calls."""
        given = GivenVariables()
        for step in self._functions.steps_in(self._definition()):
            given.update(step.own.given)
        return given

    @functools.cached_property
    def returned(self) -> ReturnedLosses:
        """The losses that it returns."""
        return ReturnedLosses(self._definition(), self._functions.losses_of)

    def _definition(self) -> FunctionDef:
        concrete: Any = self._concrete()
        found: FunctionDef = concrete.function_def
        return found

    def variant(self) -> Variant | None:
        """The function with further outputs; None (one line said) if there cannot be one."""
        if not self._tried:
            self._tried = True
            try:
                self._variant = self._build()
            except Unreachable as error:
                self._always = False
                guard.say_once(("no variant", id(self)), f"what a tf.function computes is not saved: {error}")
        return self._variant

    def _taps_of(self, name: str) -> list[Tap]:
        saving, taps = self._run.last, self._functions.taps_of(name)
        if saving is not None and saving.hook.recorder.ever_saves(CollectionKeys.USAGE):
            return taps
        return [tap for tap in taps if not isinstance(tap.key, (TracedGiven, TracedInput, TracedSide))]

    def _build(self) -> Variant:
        concrete: Any = self._concrete()
        definition = concrete.function_def
        if any(argument.type in UNREADABLE for argument in definition.signature.output_arg):
            raise Unreachable(f"{definition.signature.name} returns a resource")
        variant = Variant(definition, self._taps_of, in_branches=False)
        variant.register()
        # At exit the runtime is gone before us.
        weakref.finalize(concrete, variant.release).atexit = False
        return variant

    def __reduce__(self) -> Any:
        return (type(None), ())


class TrainingFunctions:
    """The compiled functions that train, by the names under which other functions call them."""

    def __init__(self) -> None:
        self._steps: weakref.WeakValueDictionary[str, CompiledStep] = weakref.WeakValueDictionary()
        # Names outlive the functions: a dataset keeps only the definition of the one it runs.
        self.names: set[str] = set()

    def add(self, name: str, step: CompiledStep) -> None:
        """Know one more."""
        self._steps[name] = step
        self.names.add(name)

    def taps_of(self, name: str) -> list[Tap]:
        """The taps of a function itself."""
        step = self._steps.get(name)
        return [] if step is None else list(step.own.taps())

    def losses_of(self, name: str) -> list[str]:
        """The losses that are differentiated in a function itself."""
        step = self._steps.get(name)
        return [] if step is None else [loss.ref for call in step.own.calls for loss in call.losses]

    def calls_in(self, definition: FunctionDef) -> Iterator[GradientCall]:
        """The gradient calls of a function and of the functions that it calls, as its variant returns them."""
        for step in self.steps_in(definition):
            yield from step.own.calls

    def steps_in(self, definition: FunctionDef) -> Iterator[CompiledStep]:
        """A function, and those that it calls, as far as they train; one that is called twice comes twice."""
        step = self._steps.get(definition.signature.name)
        if step is not None:
            yield step
        library = context.context()
        for node in definition.node_def:
            if node.op in CALLS and library.has_function(node.attr["f"].func.name):
                yield from self.steps_in(library.get_function_def(node.attr["f"].func.name))


def _gradient(part: TracedGradient, values: Iterator[Tensor]) -> Tensor | Rows:
    found = next(values)
    if part.indices is None:
        return found
    indices = next(values)
    variable = part.variable()
    shape = tuple(variable.shape) if variable is not None else ()
    return Rows(found, indices, shape)


def _living(references: Iterable[weakref.ref[Variable]]) -> list[Variable]:
    return [variable for reference in references if (variable := reference()) is not None]
