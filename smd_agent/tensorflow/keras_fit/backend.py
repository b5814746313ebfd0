"""Keras on TensorFlow, as the watcher of Keras sees it: steps that are compiled, and executions of several steps."""

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import transform

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.backend import Backend, Current, RunningStep, StepsPerCall
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.keras.types import Call, Model
from smd_agent.tensorflow.graph.traced_tensors import TensorTaps
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_fit.compiled_function import CompiledFunction, ConcreteFunction, name_of
from smd_agent.tensorflow.keras_fit.execution_windows import (
    Windows,
    draws_by_itself,
    feeding,
    made_for_one_step,
    steps_per_execution,
    watch_epochs,
)
from smd_agent.tensorflow.keras_fit.step_capture import TensorflowCapture
from smd_agent.tensorflow.keras_fit.step_losses import StepLosses
from smd_agent.tensorflow.keras_fit.tensor_watch import TensorWatch
from smd_agent.tensorflow.keras_fit.versions import Flavour, leave_untraced
from smd_agent.tensorflow.replicas import rank_and_size
from smd_agent.tensorflow.variable_names import NAMES


class TensorflowBackend(Backend[TensorflowHook, TensorflowCapture]):
    """One Keras whose backend is TensorFlow.

    Args:
        flavour: the Keras.
    """

    end_of_data = (StopIteration, tf.errors.OutOfRangeError)

    def __init__(self, flavour: Flavour) -> None:
        super().__init__(flavour.trainer, flavour.history, NAMES)
        self._flavour = flavour
        self.callbacks = flavour.callbacks
        self._taps = TensorTaps()
        # How often something has happened since which a model may have other variables.
        self._changes = 0
        again = TensorflowHook.repeated
        if again is not None:
            self.pause_others = again.pauses

    def install(self, current: Current[TensorflowCapture], source: HookSource[TensorflowHook]) -> None:
        """Begin to look at layers, losses, optimizers and functions that are traced."""
        watch_epochs(self.trainer)
        TensorWatch(self._flavour, self.names, self._taps, current).install()
        StepLosses(self._flavour, self._taps, current).install()

        @STEPS.fence("looking at a compiled function", again=True)
        def traced(concrete: ConcreteFunction) -> None:
            if current.step is not None:
                self._changes += 1
                self._taps.bind(concrete.graph, name_of(concrete))
                CompiledFunction(current, self._taps, source.hook, concrete)

        transform.CONCRETE_FUNCTION_CALLBACKS.append(traced)

    def leave_untraced(self, replacement: Call) -> None:
        """Keep AutoGraph from compiling a function of ours."""
        leave_untraced(replacement)

    def entered(self) -> None:
        """The model may have got other variables since the last call."""
        self._changes += 1

    def can_watch(self, model: Model) -> bool:
        """True if the steps of a model are run by this process; one line if they are not."""
        if attribute(model, "_cluster_coordinator") is None:
            return True
        guard.say_once("parameter servers", "what workers of a ParameterServerStrategy compute is not saved")
        return False

    def steps_per_call(self, model: Model, kind: str, function: Call, make: Call) -> StepsPerCall:
        """Number of steps of an execution."""
        tracings = attribute(function, "experimental_get_tracing_count")
        if tracings is not None and tracings():
            line = "a model was trained before the hook was made: its gradients, inputs and outputs are not saved"
            guard.say_once("traced before", line)
        steps, keras_3 = steps_per_execution(model), self._flavour.version >= 3
        if steps == 1 and (keras_3 or not attribute(model, "autotune_steps_per_execution", False)):
            return StepsPerCall()
        single = functools.partial(self._single, model, kind, function, make)
        if keras_3:
            return StepsPerCall(Windows(steps), single)
        # Keras 2 makes the last execution of an epoch shorter, by this very number.
        return StepsPerCall(lambda _: steps_per_execution(model), single, ends_early=False)

    def _single(self, model: Model, kind: str, function: Call, make: Call, args: tuple[object, ...]) -> Call | None:
        """A function that makes one step a call, out of the model's own for several.

        It must be traced for the iterator: for the batch at hand, with its size known, the step would round otherwise.
        And it must not be called when the data have ended: random numbers would be drawn before that shows.
        """
        # Workers that run other functions than the rest would wait for each other forever.
        if rank_and_size(attribute(model, "distribute_strategy"))[1] > 1:
            return None
        if self._flavour.version >= 3:
            return feeding(function) if kind != "predict" else None
        return None if draws_by_itself(function, args) else made_for_one_step(model, kind, make)

    def capture(self, hook: TensorflowHook, step: RunningStep[TensorflowCapture]) -> TensorflowCapture:
        """The capture of a step that has been opened."""
        return TensorflowCapture(hook, step.model, step.mode, step.variables, self._changes, self._taps)
