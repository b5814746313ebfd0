"""Watcher of one Keras: replaces the functions that its models make for their steps, and sees the ends of epochs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic

from smd_agent.core.failure_domains import METRICS, STEPS, WEIGHTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.backend import Backend, C, Current, H
from smd_agent.framework.keras.kept_out_of_models import install, put, standing
from smd_agent.framework.keras.logs import logs_in
from smd_agent.framework.keras.step_function import StepFunction
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import Make, is_ours, replace, replaced
from smd_agent.framework.weak_references import Reference, to_nothing

_FUNCTIONS = {"train": ModeKeys.TRAIN, "test": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}

_LOOPS = ("fit", "evaluate", "predict")

ENTRIES = (*_LOOPS, "train_on_batch", "test_on_batch", "predict_on_batch")
"""The methods of a model by which a program has it run steps."""


class KerasWatch(Generic[H, C]):
    """Sees the steps of all models of one Keras.

    Args:
        backend: the Keras and what it computes with.
        source: of the hook to save with, asked when the first model makes a function.
    """

    def __init__(self, backend: Backend[H, C], source: HookSource[H]) -> None:
        self._backend = backend
        self._source = source
        self._current: Current[C] = Current()
        self._makers: dict[str, Call] = {}
        self._fitted: Callable[[], Model | None] = to_nothing
        # How many of the calls by which a program runs a model's steps are going on, one inside of the other.
        self._depth = 0

    def install(self) -> None:
        """Begin to watch; called once."""
        backend = self._backend
        trainer = backend.trainer
        for kind in _FUNCTIONS:
            self._makers[kind] = getattr(trainer, _maker(kind))
            self._watch_maker(trainer, kind)
            install(trainer, _slot(kind))
        for method in ENTRIES:
            make = partial(self._around_entry, method)
            self._replace(trainer, method, make, "a model may have a class that makes its own functions")
        self._replace(backend.history, "on_epoch_end", self._around_epoch_end, "the logs of an epoch are saved")
        if backend.callbacks is not None:
            why = "weights are looked at before a callback changes them"
            self._replace(backend.callbacks, "on_epoch_end", self._around_callbacks, why)
        backend.install(self._current, self._source)

    def _replace(self, owner: type, name: str, make: Make, why: str) -> None:
        self._backend.leave_untraced(replace(owner, name, make, why=why))

    # Functions that models make.

    def _watch_maker(self, owner: type, kind: str) -> None:
        def around(original: Call) -> Call:
            def make(model: Model, *args: object, **kwargs: object) -> Any:
                result = original(model, *args, **kwargs)
                ours = self._count(model, kind)
                return result if result is None or ours is None else ours

            return make

        self._replace(owner, _maker(kind), around, "the functions that models make for their steps are counted")

    @STEPS.fence("watching a model", again=True)
    def _count(self, model: Model, kind: str) -> Call | None:
        """Have the steps of the function that a model has just made counted; returns what the model calls now."""
        slot = _slot(kind)
        function: Call | None = standing(model, slot)
        if function is None or is_a(function, StepFunction):
            return function
        if not self._backend.can_watch(model) or self._source.hook() is None:
            return None
        calls = self._backend.steps_per_call(model, kind, function, self._makers[kind])
        step = StepFunction(self._backend, self._current, self._source, model, _FUNCTIONS[kind], function, calls)
        put(model, slot, step)
        return step

    def _around_entry(self, method: str, original: Call) -> Call:
        is_loop, trains = method in _LOOPS, method == "fit"

        def entered(model: Model, *args: object, **kwargs: object) -> Any:
            if trains:
                self._fitted = Reference(model)
            self._look_for_overrides(type(model))
            self._backend.entered()
            if self._depth:
                self._save_training(model)
            self._depth += 1
            try:
                return original(model, *args, **kwargs)
            except BaseException:
                if trains:
                    self._note_left()
                raise
            finally:
                self._depth -= 1
                if is_loop and not self._depth:
                    self._publish_last()

        return entered

    @STEPS.fence("saving the last step of a loop")
    def _publish_last(self) -> None:
        # A program may stop to look at the run, or be stopped, before anything else ends that step.
        hook = self._source.hook()
        if hook is not None and hook.position.open:
            hook.recorder.publish()

    @STEPS.fence("looking at a model's class")
    def _look_for_overrides(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is self._backend.trainer:
                return
            for kind in _FUNCTIONS:
                own = vars(base).get(_maker(kind))
                if own is not None and not is_ours(own):
                    self._watch_maker(base, kind)

    # Logs.

    def _around_epoch_end(self, original: Call) -> Call:
        def on_epoch_end(callback: object, epoch: int, logs: dict[str, Any] | None = None) -> Any:
            self._saw_epoch(logs)
            return original(callback, epoch, logs)

        return on_epoch_end

    def _around_callbacks(self, original: Call) -> Call:
        def on_epoch_end(callbacks: object, *args: object, **kwargs: object) -> Any:
            self._note_left()
            return original(callbacks, *args, **kwargs)

        return on_epoch_end

    @WEIGHTS.fence("looking at weights at the end of an epoch")
    def _note_left(self) -> None:
        """The model that is trained stands as its last step has left it."""
        hook, model = self._source.hook(), self._fitted()
        step = None if model is None else standing(model, "train_function")
        if hook is not None and hook.saves_last and is_a(step, StepFunction) and step.last is not None:
            hook.left.note(hook.recorder.clocks[ModeKeys.TRAIN].step, step.model, step.variables)

    @METRICS.fence("saving the logs of an epoch")
    def _saw_epoch(self, logs: dict[str, Any] | None) -> None:
        hook = self._source.hook()
        if logs and hook is not None:
            hook.save_epoch(logs)

    @METRICS.fence("saving the logs of an epoch")
    def _save_training(self, model: Model) -> None:
        """The training of an epoch is over, and its validation begins."""
        hook, step = self._source.hook(), standing(model, "train_function")
        logs = logs_in(step.last) if is_a(step, StepFunction) else None
        if hook is not None and logs is not None and hook.position.clock is hook.recorder.clock_for(ModeKeys.TRAIN):
            hook.save_training(logs)


def is_watched(trainer: type) -> bool:
    """True if a watcher has been installed in a Keras, told by the class that makes its models' functions."""
    return any(entry.owner is trainer and entry.name == _maker("train") for entry in replaced())


def _maker(kind: str) -> str:
    return f"make_{kind}_function"


def _slot(kind: str) -> str:
    return f"{kind}_function"
