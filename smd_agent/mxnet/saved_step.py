"""The patches of one saved step and what they save; all of them are removed when the step closes.

weights    see ``smd_agent.mxnet.weights``;
inputs     of a block as it gets them, outputs as it returns them, in the first calls of a step;
losses     that Gluon's loss blocks return, and otherwise the array ``backward`` starts from;
gradients  see ``smd_agent.mxnet.gradients``;
facts      of the step, see ``smd_agent.mxnet.step_facts``.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, HybridBlock, Trainer
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.core.domains import CHANNELS, GRADIENTS, INPUTS, LAYERS, LOSSES, PARAMETERS, STEPS, WEIGHTS
from smd_agent.framework import step_events as events
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.patching import Patch, Until
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import arrays_in, copied, is_symbolic, raise_pending_error
from smd_agent.mxnet.channels import note_channels
from smd_agent.mxnet.gradients import Freshness, Gradients
from smd_agent.mxnet.hybridized import GraphTap, is_active, operation_of, trace_of
from smd_agent.mxnet.losses import KnownLosses, is_same_loss
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.step_counter import TrackedBlock
from smd_agent.mxnet.step_facts import StepFacts
from smd_agent.mxnet.structure import children, name_of
from smd_agent.mxnet.weights import Weights

# Gluon would call the first block of a class ``Loss`` like this, and the losses' regex asks for such a name.
UNNAMED_LOSS = "loss0"

# Results kept to find the block that a backward pass starts from; a teacher's are among them.
_KEPT = 8

# Of a model that is called more often in one step, the further calls would add nothing but volume.
CALLS = 16


class SavedStep(CapturedStep):
    """One step that is being saved: what is installed, and what has been saved so far."""

    def __init__(self, blocks: TrainedBlocks) -> None:
        super().__init__(blocks.recorder)
        self._blocks = blocks
        # Weakly: a step stays open until the next one begins, and a net that the program lets go must go.
        self._watched: dict[int, weakref.ref[Block]] = {}
        # What blocks have returned that nobody watches, the latest last.
        self._returned: deque[tuple[NDArray, weakref.ref[Block]]] = deque(maxlen=_KEPT)
        self._depth = 0
        self._weights = Weights(blocks, self.installed, lambda: self.is_current)
        self._gradients = Gradients(blocks)
        self._facts = StepFacts(blocks, self._gradients.has_reached)
        self._losses = KnownLosses()
        self._inputs_due = blocks.may_want_inputs()
        self._models: set[TrackedBlock] = set()
        self._calls: dict[int, int] = {}
        self._left_out = False
        self.step = blocks.recorder.position.step

    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        self.add_models()
        installed = self.installed
        installed.on_close(block_calls.watch(self._call))
        installed.on_close(backward_calls.watch(self._around_backward))
        # Trainer.step and Trainer.update both come by here: the first to sum over the contexts, the second to apply.
        installed.patch(Trainer, "_allreduce_grads", self._wrap_sum, why="gradients are saved before a store has them")
        installed.patch(Trainer, "_update", self._wrap_update, why="gradients are saved as they are applied")

    @STEPS.fence("looking at models that are saved")
    def add_models(self) -> None:
        """Save the models that have become known since this was called last, too."""
        known = (*self._blocks.models, *self._blocks.owners)
        new = [tracked for tracked in known if tracked not in self._models]
        for tracked in new:
            self._models.add(tracked)
            tracked.look_at_contexts()
            self._watched.update((id(block), weakref.ref(block)) for block in tracked.parts())
            CHANNELS.run("looking at the channels of blocks", partial(note_channels, tracked, self.writer))
            block = tracked.model
            if block is not None:
                self._calls.setdefault(id(block), 0)
        own = {id(parameter) for tracked in new for _, parameter in tracked.parameters()}
        pairs = [pair for pair in self._blocks.parameters() if id(pair[1]) in own]
        WEIGHTS.run("saving weights", partial(self._weights.save, pairs))
        PARAMETERS.run("looking at a model's parameters", partial(self._facts.add, new, pairs))

    @property
    def is_current(self) -> bool:
        """Whether what is computed now belongs to this step, which may wait for an evaluation to end."""
        return self.writer.position.saving and self.writer.position.step == self.step

    def close(self) -> None:
        """Save what was waiting, and remove everything that was installed."""
        GRADIENTS.run("saving the last gradients", self._gradients.at_end)
        PARAMETERS.run("saving what is known of parameters", lambda: self._facts.emit(events.StepEnd()))
        self._returned.clear()
        self.installed.close()

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
        if not self._takes_call(block):
            self._left_out = True
            try:
                return original(block, *args, **kwargs)
            finally:
                self._left_out = False
        return self.call(original, block, args, kwargs)

    def _takes_call(self, block: Block) -> bool:
        calls = self._calls.get(id(block))
        if calls is None:
            return True
        self._calls[id(block)] = calls + 1
        if calls < self._most_calls(block):
            return True
        name = name_of(block)
        line = f"inputs and outputs are saved of the first {CALLS} calls of {name} in a step"
        guard.say_once(("calls", name), line)
        return False

    def _most_calls(self, block: Block) -> int:
        """How many calls are saved: as many for each context."""
        parallel = [tracked for tracked in self._models if tracked.parallel and tracked.model is block]
        return CALLS * max([1, *(len(tracked.contexts) for tracked in parallel)])

    @unseen
    def call(self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a block and save what it gets and returns."""
        is_loss = self._blocks.losses.has(block)
        if id(block) in self._calls:
            self._facts.emit(events.ModelCall(name_of(block), block, (args, kwargs)))
        inputs = self._hold(args, kwargs)
        result = self._run(original, block, args, kwargs)
        self._facts.emit(events.LayerReturn(name_of(block), block, (args, kwargs), result))
        if is_a(block, HybridBlock):
            self._remember_inner_losses(block, result)
        if is_loss:
            self._facts.emit(events.LossCall(block, args, kwargs, result))
            self._remember_loss(result)
        name = (self._loss_name(block, result) if is_loss else None) or name_of(block)
        self.save_io(name, "input", inputs)
        self.save_io(name, "output", result)
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
            self._returned.append((result, weakref.ref(block)))
        return result

    @LOSSES.fence("naming a loss")
    def _loss_name(self, block: Block, result: Any) -> str:
        """What a loss block is called; what it has returned is put into the losses."""
        losses = self._blocks.losses
        step = self.writer.position.step
        models = [tracked.model for tracked in self._blocks.models if tracked.last == step]
        name = losses.name(block, tuple(name_of(model) for model in models if model is not None))
        first = self.counts.get(f"{name}_output", 0)
        losses.put_in_losses([f"{name}_output_{first + i}" for i, _ in enumerate(arrays_in(result))])
        return name

    def _is_watched(self, block: Block) -> bool:
        found = self._watched.get(id(block))
        return found is not None and found() is block

    @INPUTS.fence("keeping a block's inputs")
    def _hold(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Blocks may share one name (model zoo: ``prefix=""``), and the old library numbers their inputs in the order in
        # which the blocks return. While autograd records, nothing can overwrite an input meanwhile.
        if autograd.is_recording() or not self._inputs_due:
            return args, kwargs
        return _Held(copied(array) for array in arrays_in((args, kwargs)))

    @unseen
    def _run(self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not is_a(block, HybridBlock) or not children(block):
            return original(block, *args, **kwargs)
        if operation_of(block) is None:
            return self._run_building(original, block, args, kwargs)
        self._add_tap(block, args)
        try:
            result = original(block, *args, **kwargs)
        finally:
            self._remove_tap(block)
        return result

    @unseen
    def _run_building(
        self, original: Callable[..., Any], block: HybridBlock, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a block whose operation is made in this call, so that then is the moment to put ours in its place."""

        def wrap_build(build: Callable[..., Any]) -> Callable[..., Any]:
            def build_cache(built: HybridBlock, *build_args: Any) -> Any:
                result = build(built, *build_args)
                if built is block:
                    self._add_tap(block, args)
                return result

            return build_cache

        why = "the operation of a hybridized block is tapped as soon as it is made"
        patch = Patch(HybridBlock, "_build_cache", wrap_build, why=why, until=Until.CALL_RETURNS)
        try:
            result = original(block, *args, **kwargs)
        finally:
            patch.remove()
            self._remove_tap(block)
        return result

    @LAYERS.fence("looking into a hybridized block")
    def _add_tap(self, block: HybridBlock, args: tuple[Any, ...]) -> None:
        if not is_active(block) or not self._blocks.may_want_inside(block):
            return
        taps = self._blocks.taps
        tap = taps.get(block)
        if tap is None or tap.original is not operation_of(block):
            tap = taps.set(block, GraphTap(block, trace_of(block)))
        names = tap.names(self.next_number, self.writer.wants)
        if not names:
            return
        if attribute(block, "_callback") is not None:
            name = name_of(block)
            line = f"inputs and outputs of the blocks inside of {name} are not saved: it has a monitor of its own"
            guard.say_once(("monitored", name), line)
            return
        tap.install(block, args, names, self._save_under)

    @LAYERS.fence("leaving a hybridized block")
    def _remove_tap(self, block: HybridBlock) -> None:
        tap = self._blocks.taps.get(block)
        if tap is not None:
            tap.remove(block)

    def _save_under(self, names: list[str], array: Any) -> None:
        self.writer.save_tensors(names, [array] * len(names))

    @LAYERS.fence("saving a block's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the arrays of a block's input or output, numbered over the whole step."""
        self.save_numbered(f"{name}_{kind}", value if type(value) is _Held else arrays_in(value))

    @LOSSES.fence("remembering a loss inside of a hybridized block")
    def _remember_inner_losses(self, block: HybridBlock, result: Any) -> None:
        tap = self._blocks.taps.get(block)
        if tap is not None and is_active(block) and tap.original is operation_of(block):
            self._remember_loss(tap.losses_in(result))

    @LOSSES.fence("remembering a loss")
    def _remember_loss(self, result: Any) -> None:
        for array in arrays_in(result):
            self._losses.add(array)

    # Backward and update.

    @unseen
    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        self._blocks.training_goes_on()
        if not self.is_current:
            return run()
        self._save_heads(heads)
        before: Freshness | None = self._gradients.before_backward()
        raise_pending_error()
        try:
            result = run()
        finally:
            # Whatever has become of us: the flags are the program's.
            fresh = None if before is None else GRADIENTS.always("looking at gradients", before.restore)
            reached = self._gradients.after_backward(fresh)
            if reached:
                self._weights.reached(reached)
            raise_pending_error()
        return result

    @LOSSES.fence("saving the loss of a backward pass")
    def _save_heads(self, heads: Any) -> None:
        for array in arrays_in(heads):
            if self._losses.knows(array):
                continue
            found = self._block_behind(array)
            if found is None:
                self._losses.add(array)
                self.save_io(UNNAMED_LOSS, "output", array)
            else:
                result, block = found
                self._blocks.losses.add(block)
                self._losses.add(result)
                self.save_io(self._loss_name(block, result) or UNNAMED_LOSS, "output", result)

    def _block_behind(self, head: NDArray) -> tuple[NDArray, Block] | None:
        """The block, with what it has returned, from whose result a backward pass starts; it is a loss."""
        for result, reference in reversed(self._returned):
            block = reference()
            if block is not None and is_same_loss(head, result):
                return result, block
        return None

    def _wrap_sum(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def allreduce(trainer: Any) -> Any:
            self._blocks.training_goes_on()
            if self.is_current and attribute(trainer, "_update_on_kvstore", False):
                # The store applies what it gets and gives weights back: the sum is never seen here.
                self._gradients.before_update(trainer, summed=False)
                raise_pending_error()
                return self._facts.around_update(trainer, partial(original, trainer))
            return original(trainer)

        return allreduce

    def _wrap_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            self._blocks.training_goes_on()
            if self.is_current:
                self._gradients.before_update(trainer, summed=True)
                raise_pending_error()
                if not attribute(trainer, "_update_on_kvstore", False):
                    return self._facts.around_update(trainer, partial(original, trainer, *args, **kwargs))
            raise_pending_error()
            return original(trainer, *args, **kwargs)

        return update


class _Held(list[Any]):
    """Inputs as NumPy arrays, copied before the block could overwrite them."""
