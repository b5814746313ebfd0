"""The search for the block being trained, in scripts that do not name it.

What is called outermost while autograd records, and has parameters to train, is trained. Until such a block is found,
and whenever a Trainer has parameters of no known block, every outermost call of a block is looked at; then ``Block`` is
as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, Trainer
from mxnet.gluon.loss import Loss as LossBlock

from smd_agent import session
from smd_agent.framework.model_finder import PATIENCE, ModelFinder
from smd_agent.framework.patching import Function, Until, replace
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import is_symbolic
from smd_agent.mxnet.hook import Hook
from smd_agent.mxnet.hybridized import watch_tracing
from smd_agent.mxnet.step_counter import TrackedBlock


class BlockFinder(ModelFinder[Block, TrackedBlock, Hook]):
    """Watches Trainers being made and, as long as it must, blocks being called.

    Args:
        find_hook: gives the hook to save with, once the first block is found; None if nothing can be saved.
    """

    def __init__(self, find_hook: Callable[[], Hook | None]) -> None:
        super().__init__(find_hook)
        self._unwatch: Callable[[], None] | None = None
        self._depth = threading.local()

    def install(self) -> None:
        """Begin to watch; called once, before the program has got hold of anything of MXNet's."""
        backward_calls.install()
        watch_tracing()
        replace(Trainer, "__init__", self._wrap_init, why="a Trainer knows what is trained")
        self._watch_calls()

    def stop(self) -> None:
        """Search no more: the script registers its blocks itself, or nothing can be saved."""
        super().stop()
        self._unwatch_calls()

    # Parameters that are trained.

    def _wrap_init(self, original: Function) -> Function:
        def make_trainer(trainer: Any, *args: Any, **kwargs: Any) -> None:
            original(trainer, *args, **kwargs)
            self._trainer_made(trainer)

        return make_trainer

    @session.fence("looking at a Trainer")
    def _trainer_made(self, trainer: Any) -> None:
        if self.expect(parameter for parameter in trainer._params if parameter.grad_req != "null"):
            self._watch_calls()

    # Blocks being called.

    def _watch_calls(self) -> None:
        if self._unwatch is None:
            self._unwatch = block_calls.watch(self._call, Until.MODEL_IS_FOUND)

    def _unwatch_calls(self) -> None:
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch()

    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        depth = self._depth
        level = getattr(depth, "level", 0)
        run = original
        if level == 0 and not is_symbolic(args) and autograd.is_recording():
            run = self._counted_if_found(original, block) or original
        depth.level = level + 1
        try:
            return run(block, *args, **kwargs)
        finally:
            depth.level = level

    @session.fence("looking for the model")
    def _counted_if_found(self, original: Callable[..., Any], block: Block) -> Callable[..., Any] | None:
        """What counts the rest of this call as a step, if the block has just become known."""
        if self.stopped or isinstance(block, LossBlock):
            return None
        own = {id(parameter) for _, parameter in TrackedBlock(block).parameters() if parameter.grad_req != "null"}
        is_match = bool(own & self.params_without_model() if self.saw_training else own - self.known_params())
        found = is_match and self.adopt(block) is not None
        self._calls_without_match += 1
        done = self.saw_training and not self.params_without_model()
        if done or self._calls_without_match > PATIENCE:
            self._unwatch_calls()
        if not found or self.hook is None:
            return None
        return self.hook.count_call(block_calls.shown_to_newcomers(original))

    def parts_of(self, model: Block) -> list[Block]:
        """A block and all blocks below it."""
        return TrackedBlock(model).parts()

    def track(self, hook: Hook, model: Block, inner: list[TrackedBlock]) -> TrackedBlock:
        """Count the steps of a block from now on."""
        return hook.add_model(model)
