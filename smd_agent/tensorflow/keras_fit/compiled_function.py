"""Replacement of a compiled function of a Keras step: it runs the function, or on a saved step its variant."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf
from tensorflow.python.eager import record

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.keras.backend import Current
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.tensorflow.graph.error_messages import ToldAsOf
from smd_agent.tensorflow.graph.function_rewrite import Tap, Unreachable, Variant
from smd_agent.tensorflow.graph.traced_tensors import TensorTaps
from smd_agent.tensorflow.keras_fit.step_capture import TensorflowCapture

SLOT = "_call_flat"


class ConcreteFunction(Protocol):
    """TensorFlow's: a function compiled for one signature."""

    @property
    def name(self) -> bytes | str:
        """The name by which other functions call it."""

    @property
    def graph(self) -> tf.Graph:
        """The graph that was traced."""

    @property
    def function_def(self) -> Any:
        """The definition that the runtime knows."""

    @property
    def function_type(self) -> Any:
        """Knows how its flat outputs are packed."""

    def _call_flat(self, tensor_inputs: Sequence[Any], captured_inputs: Sequence[Any]) -> Any:
        """Run it."""


class Recording(Protocol):
    """Has what takes the values of steps."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""


class CompiledFunction:
    """Stands in front of a concrete function that was traced during a step.

    Every way of calling a concrete function goes through its ``_call_flat`` (2.13 to 2.21); the instance gets one of
    its own, so that no other function is touched. It does not own the function: a cycle would keep that until the
    garbage collector runs.

    Args:
        current: where the running step is kept.
        taps: tensors that came up while functions were traced.
        hook: gives the hook to save with.
        concrete: the function.
    """

    def __init__(
        self,
        current: Current[TensorflowCapture],
        taps: TensorTaps,
        hook: Callable[[], Recording | None],
        concrete: ConcreteFunction,
    ) -> None:
        self._current = current
        self._taps = taps
        self._hook = hook
        self._concrete = weakref.ref(concrete)
        self._variant: Variant | None = None
        self._wanted: frozenset[str] | None = None
        self._names: frozenset[str] | None = None
        self._always = False
        concrete.__dict__[SLOT] = self

    @unseen
    def __call__(self, *args: Sequence[Any], **kwargs: Sequence[Any]) -> Any:
        """Run the function, or its variant."""
        concrete: Any = self._concrete()
        try:
            step = self._current.step
            if step is None or (step.capture is None and self._names is not None and not self._always):
                return type(concrete)._call_flat(concrete, *args, **kwargs)
            if not tf.executing_eagerly() or self._is_recorded():
                return type(concrete)._call_flat(concrete, *args, **kwargs)
            return self._run(concrete, step.capture, *args, **kwargs)
        except BaseException as error:
            instead = own_failure(error)
            if instead is None:
                raise
        return instead.of(type(concrete)._call_flat, concrete, *args, **kwargs)

    def _is_recorded(self) -> bool:
        """True if a tape records the call: what it needs of the function is not what the variant gives."""
        if not record.could_possibly_record():
            return False
        if self._taps.of(self._name()):
            line = "what a tf.function computes that is called in an eager step is not saved"
            guard.say_once("function in an eager step", line)
        return True

    def _name(self) -> str:
        concrete: Any = self._concrete()
        return name_of(concrete)

    @unseen
    def _run(
        self,
        concrete: ConcreteFunction,
        capture: TensorflowCapture | None,
        tensor_inputs: Sequence[Any],
        captured_inputs: Sequence[Any],
    ) -> Any:
        variant = self._prepare()
        if capture is not None:
            capture.before_update()
        if variant is None or (capture is None and not self._always):
            return type(concrete)._call_flat(concrete, tensor_inputs, captured_inputs)
        with ToldAsOf(concrete):
            outputs, extra = variant.call([*tensor_inputs, *captured_inputs])
            result = concrete.function_type.pack_output(outputs)
        if capture is not None:
            capture.take(variant.further, extra)
        return result

    @STEPS.fence("preparing to save what a compiled step computes")
    def _prepare(self) -> Variant | None:
        """The variant for what is wanted now; None where nothing is, or nothing can be had."""
        hook = self._hook()
        if hook is None or self._always:
            return self._variant
        first = self._names is None
        if first:
            self._names = self._reachable()
        wanted = hook.recorder.ever_wanted(self._names or frozenset())
        if wanted is self._wanted or wanted == self._wanted:
            return self._variant
        self._wanted = wanted
        variant = self._build(wanted)
        if variant is None or not len(variant):
            self._variant = None
            return None
        if variant.carries_state:
            if not first:
                line = "tensors asked for after training began are not saved: the step draws random numbers"
                guard.say_once("random state", line)
                return self._variant
            self._always = True
        variant.register()
        weakref.finalize(self._concrete(), variant.release).atexit = False
        self._variant = variant
        return variant

    def _reachable(self) -> frozenset[str]:
        """Names of all values that can be had of the function and of those that it calls."""
        found: set[str] = set()

        def taps(function: str) -> list[Tap]:
            here = self._taps.of(function)
            found.update(tap.key.name for tap in here)
            return here

        concrete: Any = self._concrete()
        try:
            Variant(concrete.function_def, taps)
        except Unreachable as error:
            guard.say_once(("no variant", id(self)), f"what a compiled step computes is not saved: {error}")
        return frozenset(found)

    def _build(self, wanted: frozenset[str]) -> Variant | None:
        if not wanted:
            return None

        def taps(function: str) -> list[Tap]:
            return [tap for tap in self._taps.of(function) if tap.key.name in wanted]

        concrete: Any = self._concrete()
        try:
            variant = Variant(concrete.function_def, taps)
        except Unreachable as error:
            guard.say_once(("no variant", id(self)), f"what a compiled step computes is not saved: {error}")
            return None
        hook = self._hook()
        if hook is not None and any(not key.part for key in variant.left_out):
            guard.say_once(
                (hook.recorder, "jit_compile"),
                "with jit_compile=True inputs and outputs of layers are not saved (XLA would round otherwise);"
                " losses, metrics, weights and gradients are",
            )
        return variant

    def __reduce__(self) -> Any:
        return (type(None), ())


def name_of(concrete: ConcreteFunction) -> str:
    """The name by which other functions call a function."""
    name = concrete.name
    return name.decode() if is_a(name, bytes) else str(name)
