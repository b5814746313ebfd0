"""Everything that is installed while a step is saved, and nothing that stays behind.

weights    as they stand when the step opens, before its forward; of a parameter whose shape the forward finds out, as
           it is initialized;
inputs     of a block as it gets them, outputs as it returns them;
losses     that Gluon's loss blocks return, and otherwise the array ``backward`` starts from;
gradients  see ``smd_agent.mxnet.gradients``.
"""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mxnet import autograd
from mxnet.gluon import Block, HybridBlock, Parameter, Trainer
from mxnet.gluon.loss import Loss as LossBlock
from mxnet.ndarray import NDArray

from smd_agent import guard, session
from smd_agent.mxnet import backward, calls
from smd_agent.mxnet.arrays import arrays_in, copied, is_symbolic, raise_unheard
from smd_agent.mxnet.compiled import SeeThrough, trace_of
from smd_agent.mxnet.gradients import Freshness, Gradients, is_sparse, values_of
from smd_agent.mxnet.losses import KnownLosses

if TYPE_CHECKING:
    from smd_agent.mxnet.hook import Hook

# Gluon would call the first block of a class ``Loss`` like this, and the losses' regex asks for such a name.
UNNAMED_LOSS = "loss0"


class SavedStep:
    """One step that is being saved: what is installed, and what has been saved so far."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._undo: list[Callable[[], object]] = []
        self._counts: Counter[str] = Counter()
        # Weakly: a step stays open until the next one begins, and a net that the program lets go must go.
        self._watched: dict[int, weakref.ref[Block]] = {}
        self._unborn: dict[int, tuple[str, Parameter]] = {}
        self._gradients = Gradients(hook)
        self._losses = KnownLosses()
        self._inputs_due = hook.may_want_inputs()

    def open(self) -> None:
        """Save the weights and install what sees the rest."""
        for root in self._hook.roots:
            root.look_at_contexts()
            self._watched.update((id(block), weakref.ref(block)) for block in root.parts())
        self._watched.update((id(block), weakref.ref(block)) for block in self._hook.registered_losses)
        self._save_weights()
        self._undo.append(calls.watch(self._call))
        self._patch(NDArray, "backward", self._wrap_method_backward)
        self._undo.append(backward.watch(self._around_backward))
        # Trainer.step and Trainer.update both come by here: the first to sum over the contexts, the second to apply.
        self._patch(Trainer, "_allreduce_grads", self._wrap_sum)
        self._patch(Trainer, "_update", self._wrap_update)
        if self._unborn:
            self._patch(Parameter, "_finish_deferred_init", self._wrap_birth)

    def close(self) -> None:
        """Save what was waiting, and remove everything that was installed."""
        self._gradients.at_end()
        while self._undo:
            self._undo.pop()()

    def drop(self) -> None:
        """Remove everything that was installed."""
        while self._undo:
            self._undo.pop()()

    # Weights.

    def _save_weights(self) -> None:
        names, arrays = [], []
        for root in self._hook.roots:
            for name, parameter in self._hook.parameters(root):
                found = values_of(parameter)
                if found:
                    names.append(name)
                    arrays.append(found[0])
                elif not is_sparse(parameter):
                    self._unborn[id(parameter)] = (name, parameter)
                elif self._hook.wants(name):
                    # Reading one asks the Trainer's store for rows, which the program has not asked for.
                    guard.say_once(("sparse weight", name), f"{name} is not saved: it is a sparse parameter")
        self._hook.save_tensors(names, arrays)

    def _wrap_birth(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def finish(parameter: Parameter, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            if id(parameter) in self._unborn:
                self._save_newborn(parameter)
            return result

        return finish

    @session.fence("saving a parameter that has just been initialized")
    def _save_newborn(self, parameter: Parameter) -> None:
        found = values_of(parameter)
        if found:
            name, _ = self._unborn.pop(id(parameter))
            self._hook.save_tensor_now(name, found[0])

    # Blocks.

    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        is_loss = isinstance(block, LossBlock)
        if not self._hook.pulse.saving or not (is_loss or self._is_watched(block)) or is_symbolic(args):
            return original(block, *args, **kwargs)
        inputs = self._hold(args, kwargs)
        result = self._run(original, block, args, kwargs)
        if isinstance(block, HybridBlock):
            self._remember_inner_losses(block, result)
        if is_loss or any(block is other for other in self._hook.registered_losses):
            self._remember_loss(result)
        self.save_io(block.name, "input", inputs)
        self.save_io(block.name, "output", result)
        raise_unheard()
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
            # Its operation is made in this call, so that is the moment to put ours in its place.
            with _AfterBuilding(block, lambda: self._see_through(block, args)):
                try:
                    return original(block, *args, **kwargs)
                finally:
                    self._look_away(block)
        self._see_through(block, args)
        try:
            return original(block, *args, **kwargs)
        finally:
            self._look_away(block)

    @session.fence("looking into a hybridized block")
    def _see_through(self, block: HybridBlock, args: tuple[Any, ...]) -> None:
        if not block._active or not self._hook.may_want_inside(block):
            return
        seers = self._hook.seers
        seer = seers.get(block)
        if seer is None or seer.original is not block._cached_op:
            seer = seers[block] = SeeThrough(block, trace_of(block))
        names = seer.names(self._counts, self._hook.wants)
        if not names:
            return
        if block._callback is not None:
            line = f"inputs and outputs of the blocks inside of {block.name} are not saved: it has a monitor of its own"
            guard.say_once(("monitored", block.name), line)
            return
        seer.begin(block, args, names, self._save_under)

    @session.fence("leaving a hybridized block")
    def _look_away(self, block: HybridBlock) -> None:
        seer = self._hook.seers.get(block)
        if seer is not None:
            seer.end(block)

    def _save_under(self, names: list[str], array: Any) -> None:
        self._hook.save_tensors(names, [array] * len(names))

    @session.fence("saving a block's inputs and outputs")
    def save_io(self, name: str, kind: str, value: Any) -> None:
        """Save the arrays of a block's input or output, numbered over the whole step."""
        kind = f"{name}_{kind}"
        for array in value if isinstance(value, _Held) else arrays_in(value):
            number = self._counts[kind]
            self._counts[kind] += 1
            self._hook.save_tensor_now(f"{kind}_{number}", array)

    @session.fence("remembering a loss inside of a hybridized block")
    def _remember_inner_losses(self, block: HybridBlock, result: Any) -> None:
        seer = self._hook.seers.get(block)
        if seer is not None and block._active and seer.original is block._cached_op:
            self._remember_loss(seer.losses_in(result))

    @session.fence("remembering a loss")
    def _remember_loss(self, result: Any) -> None:
        for array in arrays_in(result):
            self._losses.add(array)

    # Backward and update.

    def _wrap_method_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def method(array: NDArray, *args: Any, **kwargs: Any) -> Any:
            return self._around_backward(array, lambda: original(array, *args, **kwargs))

        return method

    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        self._save_roots(heads)
        before: Freshness | None = self._gradients.before_backward()
        raise_unheard()
        try:
            return run()
        finally:
            self._gradients.after_backward(before)
            raise_unheard()

    @session.fence("saving the loss of a backward pass")
    def _save_roots(self, heads: Any) -> None:
        for array in arrays_in(heads):
            if not self._losses.knows(array):
                self._losses.add(array)
                self.save_io(UNNAMED_LOSS, "output", array)

    def _wrap_sum(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def allreduce(trainer: Any) -> Any:
            if getattr(trainer, "_update_on_kvstore", False):
                # The store applies what it gets and gives weights back: the sum is never seen here.
                self._gradients.before_update(trainer, summed=False)
                raise_unheard()
            return original(trainer)

        return allreduce

    def _wrap_update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def update(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            self._gradients.before_update(trainer, summed=True)
            raise_unheard()
            return original(trainer, *args, **kwargs)

        return update

    def _patch(self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        original = getattr(owner, name)
        wrapper = wrap(original)
        setattr(owner, name, wrapper)

        def restore() -> None:
            # Somebody may have wrapped ours in the meantime; then theirs stays, and ours only passes calls through.
            if vars(owner).get(name) is wrapper:
                setattr(owner, name, original)

        self._undo.append(restore)


class _AfterBuilding:
    """While it lasts, something is done as soon as a block has made its operation."""

    def __init__(self, block: HybridBlock, action: Callable[[], object]) -> None:
        self._block = block
        self._action = action

    def __enter__(self) -> None:
        original = self._original = HybridBlock._build_cache

        @functools.wraps(original)
        def build(block: HybridBlock, *args: Any) -> Any:
            result = original(block, *args)
            if block is self._block:
                self._action()
            return result

        self._wrapper = HybridBlock._build_cache = build

    def __exit__(self, *failure: object) -> None:
        if HybridBlock._build_cache is self._wrapper:
            HybridBlock._build_cache = self._original


class _Held(list[Any]):
    """Inputs as NumPy arrays, copied before the block could overwrite them."""
