"""The function that stands in the place of a model's train, test or predict function: it counts the steps.

Keras calls that function once for every step (or for every ``steps_per_execution``), from ``fit`` as from
``train_on_batch``, and nothing else is needed on a step that is not saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic

from smd_agent import guard
from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import HeldStep
from smd_agent.core.recorder import Recorder
from smd_agent.framework.error_boundary import Fallback, own_failure
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.backend import Backend, C, Current, H, RunningStep, StepsPerCall
from smd_agent.framework.keras.kept_out_of_models import Placed
from smd_agent.framework.keras.logs import StepListener
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.keras.variables import ModelVariables
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import Reference
from smd_agent.interpreter.hidden_frames import unseen

Positional = tuple[object, ...]
Keywords = Mapping[str, object]

_TRAIN = ModeKeys.TRAIN


class TentativeStep:
    """A step that has begun before it is known whether there are data for it.

    The one before it is held meanwhile: it goes to the disk when this one is known to be a step, and goes on if not.

    Args:
        recorder: whose step it is.
        clock: of the mode.
        steps: how many steps it stands for.

    Attributes:
        due: whether it is to be opened.
    """

    def __init__(self, recorder: Recorder, clock: ModeClock, steps: int) -> None:
        self._recorder = recorder
        self._steps = steps
        self._before = self._hold() if recorder.position.open else None
        self.due = recorder.position.begin(clock, steps)

    @STEPS.fence("closing a step", again=True)
    def _hold(self) -> HeldStep | None:
        return self._recorder.hold_step()

    @STEPS.fence("closing a step")
    def keep(self) -> None:
        """The call was a step: the one before it goes to the disk."""
        if self._before is not None:
            self._recorder.commit(self._before)

    @STEPS.fence("undoing a step")
    def take_back(self) -> None:
        """There were no data: the one before it is the current one again."""
        self._recorder.drop_step(self._steps)
        if self._before is not None:
            self._recorder.resume_step(self._before)


class SingleStep(Generic[C]):
    """The function for one step of a model whose own function makes several in a call; asked for once.

    Args:
        calls: how many steps a call makes.
        current: where the running step function is kept.

    Attributes:
        calls: the same.
    """

    def __init__(self, calls: StepsPerCall, current: Current[C]) -> None:
        self.calls = calls
        self._current = current
        self._function: Call | None = None
        self._asked_for = False

    def of(self, step: RunningStep[C], position: RunPosition, args: Positional) -> Call | None:
        """The function, which is made out of the model now or was before; None after a line if there is none."""
        if not self._asked_for:
            self._asked_for = True
            self._make(step, position, args)
        return self._function

    @STEPS.fence("preparing steps one by one")
    def _make(self, step: RunningStep[C], position: RunPosition, args: Positional) -> None:
        if self.calls.make_single is not None:
            # What is traced meanwhile is a part of the step function, and nobody else's.
            self._current.step = step
            position.inside = True
            try:
                self._function = self.calls.make_single(args)
            finally:
                position.inside = False
                self._current.step = None
        if self._function is None:
            guard.say_once(
                "steps_per_execution",
                "with this model and steps_per_execution > 1 only the last step of an execution can be saved, without"
                " gradients and layers; weights are those before its first step",
            )


class StepFunction(Placed, RunningStep[C], Generic[H, C]):
    """Calls a model's own function and counts its steps.

    Args:
        backend: what the model's Keras computes with.
        current: where the running step function is kept.
        source: of the hook.
        model: whose function it is.
        mode: of its steps, whatever mode the program has set, as in the old library.
        function: the model's own.
        calls: how many steps a call makes.

    Attributes:
        last: what the function has returned last, if its steps are of training.
    """

    def __init__(
        self,
        backend: Backend[H, C],
        current: Current[C],
        source: HookSource[H],
        model: Model,
        mode: ModeKeys,
        function: Call,
        calls: StepsPerCall,
    ) -> None:
        self.function = function
        self.mode = mode
        self.capture = None
        self.last: object = None
        self.variables = ModelVariables(backend.names)
        # The model holds this: a cycle would keep both until the garbage collector runs.
        self._model = Reference(model)
        self._backend = backend
        self._current = current
        self._hook = source.hook
        self._pause_others = backend.pause_others
        self._steps = calls.steps
        self._single = SingleStep(calls, current)

    @unseen
    def __call__(self, *args: object, **kwargs: object) -> Any:  # noqa: C901 - in every step
        """Run the model's own function."""
        hook, has_begun = None, False
        try:
            current = self._current
            hook = self._hook() if current.step is None else None
            if hook is None:
                return self.function(*args, **kwargs)
            steps = self._steps
            if not isinstance(steps, int):
                steps = steps(args)
            position = hook.position
            mode = self.mode
            clock = hook.recorder.clocks[mode]
            if position.open or clock.step + steps >= clock.due:
                return self._run_watched(hook, steps, args, kwargs)
            position.begin(clock, steps)
            has_begun = True
            listener = self._listener(hook, steps)
            pause = self._pause_others
            current.step = self
            position.inside = True
            try:
                if pause is not None:
                    pause(True)
                result = self.function(*args, **kwargs)
                if mode is _TRAIN:
                    self.last = result
            except self._backend.end_of_data:
                position.take_back(steps)
                raise
            finally:
                if pause is not None:
                    pause(False)
                position.inside = False
                current.step = None
            if listener is not None:
                listener.ended()
            return result
        except BaseException as error:
            instead = self._own(error)
            if instead is None:
                raise
        return self._run_instead(instead, None if has_begun else hook, self.function, args, kwargs)

    @unseen
    def _run_instead(
        self, instead: Fallback, hook: H | None, function: Call, args: Positional, kwargs: Keywords, steps: int = 1
    ) -> Any:
        """The result after a failure of ours; the hook is given where it has not counted its steps."""
        if hook is not None:
            # What follows keeps its numbers, and what is given no earlier step.
            TentativeStep(hook.recorder, hook.recorder.clocks[self.mode], steps).keep()
        # What it calls in its turn is no step of its own.
        before, self._current.step = self._current.step, self
        try:
            return instead.of(function, *args, **kwargs)
        finally:
            self._current.step = before

    def _own(self, error: BaseException) -> Fallback | None:
        instead = own_failure(error)
        if instead is None and not is_a(error, self._backend.end_of_data):
            # Whether the step has changed the weights is not known.
            self.last = None
        return instead

    def __getattr__(self, name: str) -> Any:
        # Programs ask a tf.function for its traces.
        if name == "function":
            raise AttributeError(name)
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        # Functions are not part of a saved or copied model.
        return (type(None), ())

    @property
    def model(self) -> Model:
        """The model whose function this is."""
        model = self._model()
        # It is called by the model, or by who holds the model.
        assert model is not None
        return model

    def _listener(self, hook: H, steps: int) -> StepListener | None:
        """The one to be told of the end of the steps that begin now; None if nobody wants that."""
        listener = hook.every_step if self.mode is _TRAIN else None
        return listener if listener is not None and listener.begins(self, steps) else None

    # Steps of which one is saved, or which come after one.

    @unseen
    def _run_watched(self, hook: H, steps: int, args: Positional, kwargs: Keywords) -> Any:
        single = self._single.of(self, hook.position, args) if steps > 1 else None
        if single is None:
            return self._run_step(hook, self.function, args, kwargs, steps)
        outputs, ended = self._run_step(hook, single, args, kwargs), False
        while (steps := steps - 1) and not ended:
            outputs, ended = self._run_next(hook, single, args, kwargs, outputs)
        return outputs

    @unseen
    def _run_next(self, hook: H, single: Call, args: Positional, kwargs: Keywords, last: object) -> tuple[Any, bool]:
        """One more step; what it returned, and whether there was none because the data have ended."""
        try:
            return self._run_step(hook, single, args, kwargs), False
        except self._backend.end_of_data:
            if not self._single.calls.ends_early:
                raise
            # As in the model's own loop: the last step that there was gives the result.
            return last, True

    @unseen
    def _run_step(self, hook: H, function: Call, args: Positional, kwargs: Keywords, steps: int = 1) -> Any:
        # Not left to who has called the step function: of several steps there may have been some.
        newest = hook.position.newest
        try:
            return self._run_captured(hook, function, args, kwargs, steps)
        except BaseException as error:
            instead = own_failure(error)
            if instead is None:
                raise
        is_counted = hook.position.newest != newest
        return self._run_instead(instead, None if is_counted else hook, function, args, kwargs, steps)

    @unseen
    def _run_captured(self, hook: H, function: Call, args: Positional, kwargs: Keywords, steps: int) -> Any:
        step: TentativeStep | None = None
        listener: StepListener | None = None
        self._current.step = self
        try:
            step = self._begin(hook, steps)
            if step is not None:
                self._open(hook, step, args, steps)
                listener = self._listener(hook, steps)
            self._enter(hook, True)
            result = function(*args, **kwargs)
            if self.mode is _TRAIN:
                self.last = result
            if self.capture is not None:
                # Before the last step goes to the writer, which would take turns with us.
                self.capture.finish(result)
        except self._backend.end_of_data:
            if step is not None:
                step.take_back()
            step = None
            raise
        finally:
            if self.capture is not None:
                STEPS.always("closing a step", self.capture.close, again=True)
            if step is not None:
                step.keep()
            self.capture = None
            self._enter(hook, False)
            self._current.step = None
        if listener is not None:
            listener.ended()
        return result

    def _enter(self, hook: H, enters: bool) -> None:
        """The model's own function runs next, or has ended."""
        hook.position.inside = enters
        if self._pause_others is not None:
            self._pause_others(enters)

    @STEPS.fence("counting a step", again=True)
    def _begin(self, hook: H, steps: int) -> TentativeStep:
        return TentativeStep(hook.recorder, hook.recorder.clocks[self.mode], steps)

    @STEPS.fence("opening a step")
    def _open(self, hook: H, step: TentativeStep, args: Positional, steps: int) -> None:
        hook.model_runs(self.model)
        if step.due and hook.recorder.open_step():
            self.capture = self._backend.capture(hook, self)
            self.capture.steps = steps
            self.capture.begin(args)
