"""The block being trained, and the one thing that stays on it: a step counter in front of its call.

The counter is the ``__call__`` of the block's *class*. Blocks pickle and deep-copy with all their attributes and their
registered hooks, and ``hybridize`` warns about hooks, so nothing may stay on the block itself. Other blocks of the same
class pay one look into a dictionary.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from operator import itemgetter
from types import MethodType, SimpleNamespace
from typing import Any, Protocol

from mxnet import autograd
from mxnet.gluon import Block, Parameter

from smd_agent.core.clock import ModeClock
from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.plain_access import bases_of, in_class
from smd_agent.framework.tracked_model import StepOpener, TrackedModel
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.reference_counts import has_only_a_cycle
from smd_agent.interpreter.stack_room import has_room, in_room
from smd_agent.mxnet.arrays import arrays_in, bytes_of, is_symbolic, plain, raise_pending_error
from smd_agent.mxnet.plain_access import (
    blocks_in,
    can_be_trained,
    contexts_of,
    own_parameters,
    parameter_name,
    shape_of,
    values_of,
)

_FLAT = 2
"""Most dimensions of a parameter that is looked at for updates."""

_is_training = autograd.is_training
_is_recording = autograd.is_recording


class BlockSteps(StepOpener, Protocol):
    """The object that the step counter of a block calls; the hook is one."""

    def begins_amid_training(self, train: bool, again: bool) -> bool | None:
        """True if a call begins a step while an update is awaited.

        Args:
            train: the block is called to be trained; else to be evaluated.
            again: it has been called in the current step, on the same context.
        """


class TrackedBlock(TrackedModel[Block]):
    """A block whose calls open steps.

    Args:
        block: the block.

    Attributes:
        parallel: its parameters have copies on several contexts, so that one step is a call for each of them.
        contexts: those it was called on in the step ``last``; kept only if it is parallel.
        state: values of its smallest trained parameter when they were looked at last; None if it had none.
    """

    __slots__ = ("contexts", "parallel", "state")

    def __init__(self, block: Block) -> None:
        super().__init__(block)
        self.parallel = False
        self.contexts: set[Any] = set()
        self.state: bytes | None = None
        self.look_at_contexts()

    def was_updated(self) -> bool:
        """True if parameters have been changed since this was asked last; the smallest of them is looked at."""
        known, self.state = self.state, self._state()
        return known is not None and self.state is not None and known != self.state

    def _state(self) -> bytes | None:
        smallest: Any = None
        for _, parameter in self.parameters():
            # Convolutions bring weights into another layout, in place, when they happen to run; never vectors.
            shape = shape_of(parameter)
            if not can_be_trained(parameter) or not shape or len(shape) > _FLAT:
                continue
            for array in map(plain, values_of(parameter)[:1]):
                if array.stype == "default" and (smallest is None or array.size < smallest.size):
                    smallest = array
        return None if smallest is None else bytes_of(smallest)

    @property
    def is_let_go(self) -> bool:
        """True if the program has no way to the block any more.

        A block and its scope hold each other, so that it lives on until the garbage collector runs.
        """
        return self.model is None or has_only_a_cycle(self._model)

    def parts(self) -> list[Block]:
        """The block and all blocks below it."""
        block = self.model
        return [] if block is None else blocks_in(block)

    def parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names, each once.

        Not ``collect_params``: that warns about blocks in plain lists, and the program would see the warning again.
        """
        seen = set()
        for block in self.parts():
            for parameter in own_parameters(block):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield parameter_name(parameter), parameter

    def look_at_contexts(self) -> None:
        """Find out on how many contexts the parameters are."""
        self.parallel = any(len(contexts_of(parameter)) > 1 for _, parameter in self.parameters())

    def is_called_again(self, args: tuple[Any, ...], step: int, is_other: bool) -> bool:
        """True if a parallel block was called on this context in the current step; ``is_other``: its mode was another.

        Call it once a call, as it takes note of the context.
        """
        if is_other:
            self.contexts.clear()
        array = next(iter(arrays_in(args)), None)
        context = None if array is None else plain(array).context
        again = self.last == step and (not self.contexts or context in self.contexts)
        if again or self.last != step:
            self.contexts.clear()
        self.contexts.add(context)
        return again


class Counters:
    """The step counters of one hook, on the classes of its models.

    Args:
        steps: opens and closes the steps that are counted.
    """

    def __init__(self, steps: BlockSteps) -> None:
        self._steps = steps
        self._models: dict[int, TrackedBlock] = {}
        # By id: a metaclass may have a hash of its own.
        self._classes: dict[int, tuple[type[Block], Any, Any]] = {}

    def attach(self, tracked: TrackedBlock) -> None:
        """Count a block's calls from now on."""
        block = tracked.model
        assert block is not None
        key = id(block)
        self._models[key] = tracked
        # An id may be given away again once its block is gone.
        weakref.finalize(block, self._models.pop, key, None).atexit = False
        if id(type(block)) not in self._classes:
            self._watch(type(block))

    def detach(self, tracked: TrackedBlock) -> None:
        """Leave a block alone again."""
        for key in [key for key, other in self._models.items() if other is tracked]:
            del self._models[key]
        if not self._models:
            while self._classes:
                _, (block_class, own, wrapper) = self._classes.popitem()
                if vars(block_class).get("__call__") is not wrapper:
                    continue
                if own is None:
                    type.__delattr__(block_class, "__call__")
                else:
                    type.__setattr__(block_class, "__call__", own)

    def around(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts one call that has begun before its block had a counter, and goes on with ``run``."""
        return self._counter(SimpleNamespace(__call__=run))

    def _watch(self, block_class: type[Block]) -> None:
        own = vars(block_class).get("__call__")
        owner = SimpleNamespace(__call__=own) if own is not None else _definer(block_class)
        call = self._counter(owner)
        functools.update_wrapper(call, in_class(block_class, "__call__"))
        wrapper = _Counted(call, owner)
        type.__setattr__(block_class, "__call__", wrapper)
        self._classes[id(block_class)] = (block_class, own, wrapper)

    def _begins(self, tracked: TrackedBlock, args: tuple[Any, ...], train: bool, clock: ModeClock) -> bool:
        """True if a block's call begins a step."""
        position = self._steps.position
        is_other = clock is not position.clock
        again = tracked.last == position.step
        if tracked.parallel:
            again = tracked.is_called_again(args, position.step, is_other)
        if position.awaits_update:
            begins = False
            if not train or is_other or position.unsure:
                begins = self._steps.begins_amid_training(train, again) is True
                raise_pending_error()
        else:
            begins = again or is_other
            # Of several contexts a backward pass for one may have ended the step.
            if not (tracked.parallel and position.unsure):
                begins = begins or position.updated or (train and position.ends_with_update)
        return begins

    def _counter(self, owner: Any) -> Callable[..., Any]:
        steps = self._steps
        position = steps.position
        models = self._models
        begins = self._begins

        # ``owner.__call__`` is looked up at each call: Block's own is replaced while a step is saved. That is why it is
        # none of the patches in the register, which call what they have found.
        def call(block: Block, *args: Any, **kwargs: Any) -> Any:
            try:
                tracked = models.get(id(block))
                if tracked is None or position.inside or is_symbolic(args):
                    return owner.__call__(block, *args, **kwargs)
                train = _is_recording() and _is_training()
                clock = position.train if train else position.evaluation
                begun = begins(tracked, args, train, clock)
                if begun:
                    if position.open:
                        in_room(steps.finish_step)
                        raise_pending_error()
                    counted = True
                    # As ``TrainingSteps.begin`` does it.
                    position.awaits_update = position.ends_with_update if train else position.awaits_update
                    position.newest += 1
                    position.step = position.newest
                    position.clock = clock
                    position.updated = False
                    clock.step += 1
                    if clock.step >= clock.due and has_room():
                        steps.start_step()
                        raise_pending_error()
                tracked.last = position.step
                position.inside = True
                try:
                    return owner.__call__(block, *args, **kwargs)
                finally:
                    position.inside = False
            except BaseException as error:
                instead = own_failure(error)
                if instead is None:
                    raise
                trains = _is_recording() and _is_training()
                counted = "counted" in locals() or not locals().get("begun", True)
                in_room(steps.count_missed, models.get(id(block)), trains, counted)
            run = owner.__call__
            return run(block, *args, **kwargs) if instead.is_call else instead.of(run)

        return unseen(call)


class _Counted(property):
    """A counter as an attribute of a class.

    A property, so that it is bound in C; and no function, so that a class that is pickled by value, as cloudpickle does
    with those of ``__main__``, takes the plain ``__call__`` along and not our hook.
    """

    def __init__(self, function: Callable[..., Any], owner: Any) -> None:
        super().__init__(functools.partial(MethodType, function))
        self._function = function
        self._owner = owner

    @unseen
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return itemgetter(0), ((self._owner.__call__,),)


def _definer(block_class: type[Block]) -> Any:
    """The class that a class has its ``__call__`` from."""
    return next(base for base in bases_of(block_class)[1:] if "__call__" in vars(base))
