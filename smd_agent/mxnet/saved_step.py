"""A step of Gluon that is being saved: what is installed to see it, what belongs to it, and the events of it.

What is saved of it, ``step_probes`` says. All that is installed is removed when the step closes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, Parameter, Trainer
from mxnet.ndarray import NDArray

from smd_agent.core.failure_domains import STEPS
from smd_agent.framework import step_events as events
from smd_agent.framework.call_limit import CallLimit
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.tracked_model import free_name
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import is_symbolic, raise_pending_error
from smd_agent.mxnet.plain_access import awaits_values, name_of, updates_on_store
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.reached_parameters import ReachedParameters
from smd_agent.mxnet.step_counter import TrackedBlock
from smd_agent.mxnet.step_probes import StepProbes
from smd_agent.mxnet.tapped_calls import TappedCalls


class SavedStep(CapturedStep):
    """One step that is being saved.

    Args:
        blocks: those that are trained.

    Attributes:
        step: its number over all modes.
    """

    def __init__(self, blocks: TrainedBlocks) -> None:
        super().__init__(blocks.recorder)
        self._blocks = blocks
        self.step = blocks.recorder.position.step
        # By the ids of their blocks.
        self._models: dict[int, TrackedBlock] = {}
        # Weakly: a step stays open until the next one begins, and a net that the program lets go must go.
        self._watched: dict[int, weakref.ref[Block]] = {}
        # Of the models, by the ids of their parameters.
        self._titles: dict[int, str] = {}
        self._calls = CallLimit()
        self._left_out = False
        self._depth = 0
        self._reached = ReachedParameters(blocks)
        self._tapped = TappedCalls(blocks, self)
        self._probes = StepProbes(blocks, self, self._reached.has)

    def open(self) -> None:
        """Tell of the models and install what sees the rest."""
        self.add_models()
        installed = self.installed
        installed.on_close(block_calls.watch(self._call))
        installed.on_close(backward_calls.watch(self._around_backward))
        # Trainer.step and Trainer.update both come by here: the first to sum over the contexts, the second to apply.
        installed.patch(Trainer, "_allreduce_grads", self._wrap_sum, why="gradients are saved before a store has them")
        installed.patch(Trainer, "_update", self._wrap_update, why="gradients are saved as they are applied")

    def close(self) -> None:
        """Tell of the end, and remove everything that was installed."""
        self._probes.emit(events.StepEnd())
        self.installed.close()

    # What belongs to the step.

    @property
    def is_current(self) -> bool:
        """True if what is computed now belongs to this step, which may wait for an evaluation to end."""
        return self.writer.position.saving and self.writer.position.step == self.step

    @STEPS.fence("looking at models that are saved")
    def add_models(self) -> None:
        """Save the models that have become known since this was called last, too."""
        known = (*self._blocks.models, *self._blocks.owners)
        new = [tracked for tracked in known if self._models.get(id(tracked.model)) is not tracked]
        for tracked in new:
            self._models[id(tracked.model)] = tracked
            tracked.look_at_contexts()
            self._watched.update((id(block), weakref.ref(block)) for block in tracked.parts())
            self._probes.emit(events.NewModel(tracked))
        names = {id(parameter): name for name, parameter in self._blocks.parameters()}
        awaited = False
        for tracked in new:
            own = [parameter for _, parameter in tracked.parameters() if id(parameter) not in self._titles]
            if tracked.model is not None and own:
                title = free_name(name_of(tracked.model), {*self._titles.values()}.__contains__)
                self._titles.update((id(parameter), title) for parameter in own)
                pairs = [(names[id(parameter)], parameter) for parameter in own]
                self._probes.emit(events.NewParameters(title, tracked, pairs))
                awaited = awaited or any(map(awaits_values, own))
        if awaited:
            why = "weights are saved as they are initialized"
            self.installed.patch(Parameter, "_finish_deferred_init", self._wrap_initialization, why=why)

    def _wrap_initialization(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def finish(parameter: Parameter, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            if self.is_current:
                self._probes.emit(events.Initialized(parameter))
            return result

        return finish

    def save_given(self, name: str, value: NDArray) -> None:
        """Save an array under the name that the script gives it."""
        self._probes.emit(events.ValueGiven(name, value))

    # Blocks.

    @unseen
    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        if is_symbolic(args):
            return original(block, *args, **kwargs)
        is_loss = self._blocks.losses.has(block)
        if is_loss and autograd.is_recording() and autograd.is_training():
            self._blocks.training_goes_on()
        if not self.is_current or self._left_out:
            return original(block, *args, **kwargs)
        if not (is_loss or self._is_watched(block)):
            return self._call_unwatched(original, block, args, kwargs)
        if self._takes_call(block):
            return self.call(original, block, args, kwargs)
        self._left_out = True
        try:
            return original(block, *args, **kwargs)
        finally:
            self._left_out = False

    def _is_watched(self, block: Block) -> bool:
        found = self._watched.get(id(block))
        return found is not None and found() is block

    def _takes_call(self, block: Block) -> bool:
        tracked = self._models.get(id(block))
        if tracked is None:
            return True
        # As many for each context.
        times = max(1, len(tracked.contexts)) if tracked.parallel else 1
        return self._calls.takes(id(block), name_of(block), times)

    @unseen
    def call(self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a block, and tell of what it gets and returns."""
        emit, name = self._probes.emit, name_of(block)
        is_loss = self._blocks.losses.has(block)
        if id(block) in self._models:
            emit(events.ModelCall(name, block, (args, kwargs)))
        emit(events.LayerCall(name, block, args, kwargs))
        result = self._tapped.run(original, block, args, kwargs)
        if is_loss:
            emit(events.LossCall(block, args, kwargs, result))
        emit(events.LayerReturn(name, block, (args, kwargs), result))
        raise_pending_error()
        return result

    @unseen
    def _call_unwatched(
        self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._depth += 1
        try:
            result = original(block, *args, **kwargs)
        finally:
            self._depth -= 1
        if not self._depth and autograd.is_recording() and is_a(result, NDArray):
            self._probes.emit(events.OutsideReturn(block, result))
        return result

    # Backward and update.

    @unseen
    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        self._blocks.training_goes_on()
        if not self.is_current:
            return run()
        self._probes.emit(events.BeforeBackward(heads))
        before = self._reached.before_backward()
        raise_pending_error()
        try:
            result = run()
        finally:
            self._probes.emit(events.AfterBackward(self._reached.after_backward(before)))
            raise_pending_error()
        return result

    def _wrap_sum(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def allreduce(trainer: Any) -> Any:
            self._blocks.training_goes_on()
            # The store applies what it gets and gives weights back: the sum is never seen here.
            if self.is_current and updates_on_store(trainer):
                return self._around_update(trainer, partial(original, trainer))
            return original(trainer)

        return allreduce

    def _wrap_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            self._blocks.training_goes_on()
            if self.is_current and not updates_on_store(trainer):
                return self._around_update(trainer, partial(original, trainer, *args, **kwargs))
            raise_pending_error()
            return original(trainer, *args, **kwargs)

        return update

    @unseen
    def _around_update(self, trainer: Any, update: Callable[[], Any]) -> Any:
        emit = self._probes.emit
        emit(events.BeforeOptimizer(trainer))
        emit(events.BeforeUpdate(trainer))
        done = self._probes.listen(trainer)
        raise_pending_error()
        try:
            result = update()
        finally:
            if done is not None:
                done()
        # Not after a failure of ours, which has switched the capture off.
        if self.writer.position.saving:
            emit(events.AfterUpdate(trainer))
            raise_pending_error()
        return result
