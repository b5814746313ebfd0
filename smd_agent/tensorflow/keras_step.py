"""What stands in the place of a model's compiled train, test or predict function: it counts the steps.

Keras calls that function once for every step (or for every ``steps_per_execution``), from ``fit`` as from
``train_on_batch``, and nothing else is needed on a step that is not saved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from smd_agent import guard, session
from smd_agent.core.modes import ModeKeys
from smd_agent.core.sink import HeldStep
from smd_agent.tensorflow.keras_capture import Capture
from smd_agent.tensorflow.keras_hook import KerasHook
from smd_agent.tensorflow.keras_variables import ModelVariables
from smd_agent.tensorflow.strategy import rank_and_size

if TYPE_CHECKING:
    from smd_agent.tensorflow.hook import TensorflowHook
    from smd_agent.tensorflow.keras_watch import KerasWatch

_END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)


class StepFunction:
    """Calls a model's own function and counts its steps.

    Args:
        watch: of the Keras that the model belongs to.
        model: whose function it is.
        mode: of its steps.
        function: the model's own.
        steps: how many steps a call makes, or what tells that of the call's arguments.
        single: makes a function for one step out of the model; only asked when a call makes several.

    Attributes:
        capture: what collects the current step; None if that is not saved.
        variables: what the model's saved steps read.
    """

    def __init__(
        self,
        watch: KerasWatch,
        model: Any,
        mode: ModeKeys,
        function: Callable[..., Any],
        steps: int | Callable[[tuple[Any, ...]], int],
        single: Callable[[], Callable[..., Any] | None],
    ) -> None:
        self.function = function
        self.mode = mode
        self.capture: Capture | None = None
        self.variables = ModelVariables(watch.names)
        # The model holds this: a cycle would keep both until the garbage collector runs.
        self._model = weakref.ref(model)
        self._watch = watch
        self._steps = steps
        self._make_single = single
        self._single: Callable[..., Any] | None = None
        self._asked_for_single = False
        self._optimizers: dict[int, weakref.ref[Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model's own function."""
        watch = self._watch
        if watch.current is not None:
            return self.function(*args, **kwargs)
        hook = watch.hook()
        if hook is None:
            return self.function(*args, **kwargs)
        steps = self._steps
        if not isinstance(steps, int):
            steps = steps(args)
        pulse = hook.pulse
        clock = hook.clock_for(self.mode)
        if pulse.open or clock.step + steps >= clock.due:
            return self._run_watched(hook, steps, args, kwargs)
        pulse.step += steps
        pulse.clock = clock
        clock.step += steps
        watch.current = self
        pulse.inside = True
        try:
            return self.function(*args, **kwargs)
        except _END_OF_DATA:
            pulse.step -= steps
            clock.step -= steps
            raise
        finally:
            pulse.inside = False
            watch.current = None

    def __getattr__(self, name: str) -> Any:
        # Programs ask a tf.function for its traces.
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        # Functions are not part of a saved or copied model.
        return (type(None), ())

    @property
    def model(self) -> Any:
        """The model whose function this is."""
        return self._model()

    def optimizers(self) -> list[Any]:
        """The model's optimizer, and others that were seen to change variables in its steps."""
        own = getattr(self.model, "optimizer", None)
        seen = [optimizer() for optimizer in self._optimizers.values()]
        return [optimizer for optimizer in (own, *seen) if optimizer is not None]

    def saw_optimizer(self, optimizer: Any) -> None:
        """An optimizer changes variables in this model's steps."""
        self._optimizers.setdefault(id(optimizer), weakref.ref(optimizer))

    # Steps of which one is saved, or which come after one.

    def _run_watched(self, hook: TensorflowHook, steps: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        single = self._one_step() if steps > 1 else None
        if single is None:
            return self._run_step(hook, self.function, args, kwargs, steps)
        outputs, ended = self._run_step(hook, single, args, kwargs), False
        while (steps := steps - 1) and not ended:
            outputs, ended = self._run_next(hook, single, args, kwargs, outputs)
        return outputs

    def _run_next(
        self, hook: TensorflowHook, single: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], last: Any
    ) -> tuple[Any, bool]:
        """One more step; what it returned, and whether there was none because the data have ended."""
        try:
            return self._run_step(hook, single, args, kwargs), False
        except _END_OF_DATA:
            if self._watch.flavour.version < 3:
                raise
            # As in the model's own loop: the last step that there was gives the result.
            return last, True

    def _run_step(
        self,
        hook: TensorflowHook,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        steps: int = 1,
    ) -> Any:
        watch = self._watch
        watch.current = self
        last = None
        try:
            last = self._begin(hook, steps)
            hook.pulse.inside = True
            outputs = function(*args, **kwargs)
            if self.capture is not None:
                # Before the last step goes to the writer, which would take turns with us.
                self.capture.finish(outputs)
        except _END_OF_DATA:
            self._take_back(hook, steps, last)
            last = None
            raise
        finally:
            if last is not None:
                self._end(hook, last)
            self.capture = None
            hook.pulse.inside = False
            watch.current = None
        return outputs

    @session.fence("opening a step")
    def _begin(self, hook: TensorflowHook, steps: int) -> HeldStep | None:
        """Open the next step; returns the one before, which goes on should this one find no data."""
        pulse = hook.pulse
        last = hook.hold_step() if pulse.open else None
        clock = hook.clock_for(self.mode)
        pulse.step += steps
        pulse.clock = clock
        clock.step += steps
        if isinstance(hook, KerasHook):
            hook.strategy = getattr(self.model, "distribute_strategy", None)
        if clock.step >= clock.due and hook.open_step():
            self.capture = Capture(hook, self._watch, self)
            self.capture.begin()
        return last

    @session.fence("closing a step")
    def _end(self, hook: TensorflowHook, last: HeldStep) -> None:
        hook.end_held_step(last)

    @session.fence("undoing a step")
    def _take_back(self, hook: TensorflowHook, steps: int, last: HeldStep | None) -> None:
        hook.pulse.step -= steps - 1
        hook.pulse.clock.step -= steps - 1
        hook.drop_step()
        if last is not None:
            hook.resume_step(last)

    def _one_step(self) -> Callable[..., Any] | None:
        if not self._asked_for_single:
            self._asked_for_single = True
            self._prepare_single()
        return self._single

    @session.fence("preparing steps one by one")
    def _prepare_single(self) -> None:
        # Workers that run other functions than the rest would wait for each other forever.
        if rank_and_size(getattr(self.model, "distribute_strategy", None))[1] == 1:
            self._single = self._make_single()
        if self._single is None:
            guard.say_once(
                "steps_per_execution",
                "with this model and steps_per_execution > 1 only the last step of an execution can be saved, without"
                " gradients and layers; weights are those before its first step",
            )
