"""The MXNet hook: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy.typing as npt
from mxnet.gluon import Block, HybridBlock, Parameter
from mxnet.gluon.loss import Loss as LossBlock
from mxnet.ndarray import NDArray

from smd_agent import guard, session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.tracked_model import free_name
from smd_agent.mxnet import backward_calls
from smd_agent.mxnet.arrays import to_array
from smd_agent.mxnet.collection import BUILT_IN, DEFAULT_SAVED, Collection
from smd_agent.mxnet.hybridized import GraphTap, watch_tracing
from smd_agent.mxnet.saved_step import SavedStep
from smd_agent.mxnet.step_counter import Counters, TrackedBlock
from smd_agent.mxnet.worker import rank_and_size

# Collections in which nothing can be that comes from inside of a block, unless the user has widened them.
_OUTER_COLLECTIONS = {"weights", "biases", "gradients"}


class Hook(FrameworkHook):
    """Saves the tensors of a Gluon training run by step and mode.

    A step begins with a call of a registered block when none is open, when the mode differs from the open step's, or
    when that block was called in the open step already; calls for several contexts are one step. The mode is the one
    set with ``set_mode``, GLOBAL before that.
    """

    built_in = BUILT_IN
    default_saved = DEFAULT_SAVED
    collection_class = Collection

    def set_up(self) -> None:
        """No block is known yet."""
        self.models: list[TrackedBlock] = []
        self.registered_losses: list[Block] = []
        self.taps: weakref.WeakKeyDictionary[HybridBlock, GraphTap] = weakref.WeakKeyDictionary()
        self._registered: set[TrackedBlock] = set()
        self._counters = Counters(self)
        self._names: dict[str, weakref.ref[Parameter]] = {}
        backward_calls.install()
        watch_tracing()

    # What users call.

    def register_block(self, block: Block) -> None:
        """Save this block: its calls open the steps. Of a loss block, save what it returns.

        What is no Block, or is registered already, gets one line and is left alone.
        """
        if not isinstance(block, Block):
            guard.say(f"{block!r} is not registered: it must be a mxnet.gluon.Block")
            return
        if isinstance(block, LossBlock):
            self.register_loss(block)
            return
        parts = {id(part) for part in TrackedBlock(block).parts()}
        for tracked in [*self.models]:
            if tracked.is_in(parts):
                if tracked in self._registered:
                    guard.say(f"{block.name} is not registered: it, or a block inside of it, is registered already")
                    return
                self.remove_model(tracked)
        self._registered.add(self.add_model(block))

    register_hook = register_block

    def register_loss(self, block: Block) -> None:
        """Save what this block returns as a loss; loss blocks of ``gluon.loss`` are saved without it."""
        if all(block is not other for other in self.registered_losses):
            self.registered_losses.append(block)

    def record_tensor_value(self, tensor_name: str, tensor_value: NDArray) -> None:
        """Save an array as ``<tensor_name>_output_<i>``, if the current step saves a collection it belongs to.

        Raises:
            AssertionError: it is no array.
        """
        if not isinstance(tensor_value, NDArray):
            raise AssertionError(f"tensor_value={tensor_value!r} must be an mxnet NDArray")
        capture = self.recorder.capture
        if isinstance(capture, SavedStep):
            capture.save_io(tensor_name, "output", tensor_value)

    # What the patches and the saved step call.

    def add_model(self, block: Block) -> TrackedBlock:
        """Count the steps of a block and save them."""
        self.models = [tracked for tracked in self.models if tracked.model is not None]
        tracked = TrackedBlock(block)
        self.models.append(tracked)
        self._counters.attach(tracked)
        return tracked

    def count_call(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """What counts one call that has begun before its block had a counter, and has ``run`` go on with it."""
        return self._counters.around(run)

    def remove_model(self, tracked: TrackedBlock) -> None:
        """Leave a block alone again."""
        self._counters.detach(tracked)
        self.models.remove(tracked)

    def parameters(self, tracked: TrackedBlock) -> list[tuple[str, Parameter]]:
        """A block's parameters with the names they are saved under: their own, made unique where two have the same."""
        return [(self._name_of(parameter, name), parameter) for name, parameter in tracked.parameters()]

    def _name_of(self, parameter: Parameter, name: str) -> str:
        def is_anothers(candidate: str) -> bool:
            other = self._names.get(candidate, lambda: None)()
            return other is not None and other is not parameter

        free = free_name(name, is_anothers)
        self._names[free] = weakref.ref(parameter)
        return free

    def may_want_inside(self, block: HybridBlock) -> bool:
        """Whether the current step may save something from inside of a block."""
        return bool(self.recorder.collections_due() - _OUTER_COLLECTIONS) or self._widened(_OUTER_COLLECTIONS)

    def may_want_inputs(self) -> bool:
        """Whether the current step may save the input of a block."""
        without = _OUTER_COLLECTIONS | {CollectionKeys.LOSSES}
        return bool(self.recorder.collections_due() - without) or self._widened(without)

    @session.fence("opening a step")
    def start_step(self) -> None:
        """Decide about a step that is due, and have it saved."""
        if not self.recorder.open_step():
            return
        capture = self.recorder.capture = SavedStep(self)
        capture.open()

    def _widened(self, names: set[str]) -> bool:
        return any(self.collection_manager.get(name).include_regex != list(BUILT_IN[name]) for name in names)

    # What BaseHook leaves to us.

    def disable(self) -> None:
        """Save nothing more and leave the blocks alone."""
        super().disable()
        for tracked in self.models:
            self._counters.detach(tracked)

    def to_array(self, value: Any) -> tuple[npt.NDArray[Any], str | None] | None:
        """An array of MXNet as one of NumPy that may share its memory."""
        if isinstance(value, NDArray):
            return to_array(value)
        return super().to_array(value)

    def worker(self) -> tuple[int, int]:
        """Rank and number of workers, as Horovod knows them when the first step is saved."""
        return rank_and_size()

    def __reduce__(self) -> tuple[Any, ...]:
        # A model that holds the hook pickles and copies; the copy's hook is an empty shell.
        return (object.__new__, (type(self),))
