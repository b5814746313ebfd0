"""The patches of one saved step and what they save; all of them are removed when the step closes.

weights    as they stand when the step opens, before its forward; of a parameter whose shape the forward finds out, as
           it is initialized;
inputs     of a block as it gets them, outputs as it returns them;
losses     that Gluon's loss blocks return, and otherwise the array ``backward`` starts from;
gradients  see ``smd_agent.mxnet.gradients``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, HybridBlock, Parameter, Trainer
from mxnet.gluon.loss import Loss as LossBlock
from mxnet.ndarray import NDArray

from smd_agent import guard, session
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.patching import Patch, Until
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import arrays_in, copied, is_symbolic, raise_pending_error
from smd_agent.mxnet.gradients import Freshness, Gradients, is_sparse, values_of
from smd_agent.mxnet.hybridized import GraphTap, trace_of
from smd_agent.mxnet.losses import KnownLosses
from smd_agent.mxnet.ports import TrainedBlocks

# Gluon would call the first block of a class ``Loss`` like this, and the losses' regex asks for such a name.
UNNAMED_LOSS = "loss0"


class SavedStep(CapturedStep):
    """One step that is being saved: what is installed, and what has been saved so far."""

    def __init__(self, blocks: TrainedBlocks) -> None:
        super().__init__(blocks.recorder)
        self._blocks = blocks
        # Weakly: a step stays open until the next one begins, and a net that the program lets go must go.
        self._watched: dict[int, weakref.ref[Block]] = {}
        # Parameters that get their values in the forward.
        self._deferred: dict[int, tuple[str, Parameter]] = {}
        self._gradients = Gradients(blocks)
        self._losses = KnownLosses()
        self._inputs_due = blocks.may_want_inputs()

    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        for tracked in self._blocks.models:
            tracked.look_at_contexts()
            self._watched.update((id(block), weakref.ref(block)) for block in tracked.parts())
        self._watched.update((id(block), weakref.ref(block)) for block in self._blocks.registered_losses)
        self._save_weights()
        installed = self.installed
        installed.on_close(block_calls.watch(self._call))
        installed.patch(NDArray, "backward", self._wrap_method_backward, why="gradients and losses are saved")
        installed.on_close(backward_calls.watch(self._around_backward))
        # Trainer.step and Trainer.update both come by here: the first to sum over the contexts, the second to apply.
        installed.patch(Trainer, "_allreduce_grads", self._wrap_sum, why="gradients are saved before a store has them")
        installed.patch(Trainer, "_update", self._wrap_update, why="gradients are saved as they are applied")
        if self._deferred:
            why = "weights are saved as they are initialized"
            installed.patch(Parameter, "_finish_deferred_init", self._wrap_deferred_init, why=why)

    def close(self) -> None:
        """Save what was waiting, and remove everything that was installed."""
        self._gradients.at_end()
        self.installed.close()

    # Weights.

    def _save_weights(self) -> None:
        names, arrays = [], []
        for tracked in self._blocks.models:
            for name, parameter in self._blocks.parameters(tracked):
                found = values_of(parameter)
                if found:
                    names.append(name)
                    arrays.append(found[0])
                elif not is_sparse(parameter):
                    self._deferred[id(parameter)] = (name, parameter)
                elif self.writer.wants(name):
                    # Reading one asks the Trainer's store for rows, which the program has not asked for.
                    guard.say_once(("sparse weight", name), f"{name} is not saved: it is a sparse parameter")
        self.writer.save_tensors(names, arrays)

    def _wrap_deferred_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def finish(parameter: Parameter, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            if id(parameter) in self._deferred:
                self._save_initialized(parameter)
            return result

        return finish

    @session.fence("saving a parameter that has just been initialized")
    def _save_initialized(self, parameter: Parameter) -> None:
        found = values_of(parameter)
        if found:
            name, _ = self._deferred.pop(id(parameter))
            self.writer.save_tensor_now(name, found[0])

    # Blocks.

    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        is_loss = isinstance(block, LossBlock)
        if not self.writer.position.saving or not (is_loss or self._is_watched(block)) or is_symbolic(args):
            return original(block, *args, **kwargs)
        inputs = self._hold(args, kwargs)
        result = self._run(original, block, args, kwargs)
        if isinstance(block, HybridBlock):
            self._remember_inner_losses(block, result)
        if is_loss or any(block is other for other in self._blocks.registered_losses):
            self._remember_loss(result)
        self.save_io(block.name, "input", inputs)
        self.save_io(block.name, "output", result)
        raise_pending_error()
        return result

    def _is_watched(self, block: Block) -> bool:
        found = self._watched.get(id(block))
        return found is not None and found() is block

    @session.fence("keeping a block's inputs")
    def _hold(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Blocks may share one name (model zoo: ``prefix=""``), and the old library numbers their inputs in the order in
        # which the blocks return. While autograd records, nothing can overwrite an input meanwhile.
        if autograd.is_recording() or not self._inputs_due:
            return args, kwargs
        return _Held(copied(array) for array in arrays_in((args, kwargs)))

    def _run(self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(block, HybridBlock) or not block._children:
            return original(block, *args, **kwargs)
        if block._cached_op is None:
            return self._run_building(original, block, args, kwargs)
        self._add_tap(block, args)
        try:
            return original(block, *args, **kwargs)
        finally:
            self._remove_tap(block)

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
            return original(block, *args, **kwargs)
        finally:
            patch.remove()
            self._remove_tap(block)

    @session.fence("looking into a hybridized block")
    def _add_tap(self, block: HybridBlock, args: tuple[Any, ...]) -> None:
        if not block._active or not self._blocks.may_want_inside(block):
            return
        taps = self._blocks.taps
        tap = taps.get(block)
        if tap is None or tap.original is not block._cached_op:
            tap = taps[block] = GraphTap(block, trace_of(block))
        names = tap.names(self.next_number, self.writer.wants)
        if not names:
            return
        if block._callback is not None:
            line = f"inputs and outputs of the blocks inside of {block.name} are not saved: it has a monitor of its own"
            guard.say_once(("monitored", block.name), line)
            return
        tap.install(block, args, names, self._save_under)

    @session.fence("leaving a hybridized block")
    def _remove_tap(self, block: HybridBlock) -> None:
        tap = self._blocks.taps.get(block)
        if tap is not None:
            tap.remove(block)

    def _save_under(self, names: list[str], array: Any) -> None:
        self.writer.save_tensors(names, [array] * len(names))

    @session.fence("saving a block's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the arrays of a block's input or output, numbered over the whole step."""
        self.save_numbered(f"{name}_{kind}", value if isinstance(value, _Held) else arrays_in(value))

    @session.fence("remembering a loss inside of a hybridized block")
    def _remember_inner_losses(self, block: HybridBlock, result: Any) -> None:
        tap = self._blocks.taps.get(block)
        if tap is not None and block._active and tap.original is block._cached_op:
            self._remember_loss(tap.losses_in(result))

    @session.fence("remembering a loss")
    def _remember_loss(self, result: Any) -> None:
        for array in arrays_in(result):
            self._losses.add(array)

    # Backward and update.

    def _wrap_method_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(array: NDArray, *args: Any, **kwargs: Any) -> Any:
            return self._around_backward(array, lambda: original(array, *args, **kwargs))

        return method

    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        self._save_heads(heads)
        before: Freshness | None = self._gradients.before_backward()
        raise_pending_error()
        try:
            return run()
        finally:
            self._gradients.after_backward(before)
            raise_pending_error()

    @session.fence("saving the loss of a backward pass")
    def _save_heads(self, heads: Any) -> None:
        for array in arrays_in(heads):
            if not self._losses.knows(array):
                self._losses.add(array)
                self.save_io(UNNAMED_LOSS, "output", array)

    def _wrap_sum(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def allreduce(trainer: Any) -> Any:
            if getattr(trainer, "_update_on_kvstore", False):
                # The store applies what it gets and gives weights back: the sum is never seen here.
                self._gradients.before_update(trainer, summed=False)
                raise_pending_error()
            return original(trainer)

        return allreduce

    def _wrap_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            self._gradients.before_update(trainer, summed=True)
            raise_pending_error()
            return original(trainer, *args, **kwargs)

        return update


class _Held(list[Any]):
    """Inputs as NumPy arrays, copied before the block could overwrite them."""
