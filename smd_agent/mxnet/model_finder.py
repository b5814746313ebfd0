"""The search for the block being trained, in scripts that do not name it.

What is called outermost while autograd records, and has parameters to train, is trained. Until such a block is found,
and whenever a Trainer has parameters of no known block, every outermost call of a block is looked at; then ``Block`` is
as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, Parameter, Trainer
from mxnet.gluon.loss import Loss as LossBlock

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.model_finder import PATIENCE, ModelFinder
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import Function, Until, replace
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls, block_calls, live_blocks
from smd_agent.mxnet.arrays import is_symbolic
from smd_agent.mxnet.hook import Hook
from smd_agent.mxnet.hybridized import watch_tracing
from smd_agent.mxnet.lost_loads import loads
from smd_agent.mxnet.partial_loads import partial_loads
from smd_agent.mxnet.plain_access import block_of, can_be_trained, own_parameters, parameters_of
from smd_agent.mxnet.step_counter import TrackedBlock
from smd_agent.mxnet.trainer_watch import updates

_LOOSE = (
    "parameters are trained that belong to no gluon.Block: they are saved by their own names, from the second iteration"
    " on, which is step 1"
)


class BlockFinder(ModelFinder[Block, TrackedBlock, Hook]):
    """Watches Trainers being made and, as long as it must, blocks being called.

    Args:
        find_hook: gives the hook to save with, once the first block is found; None if nothing can be saved.
    """

    def __init__(self, find_hook: Callable[[], Hook | None]) -> None:
        super().__init__(find_hook)
        self._unwatch: Callable[[], None] | None = None
        self._depth = threading.local()
        self._leave_pass: Callable[[], object] = bool
        self._had_pass = False
        self._loose: Block | None = None
        self._asked_for_loose = False
        # Known since the call in progress, which is not counted yet; and whether loose parameters are trained with it.
        self._uncounted: tuple[TrackedBlock, bool] | None = None

    def install(self) -> None:
        """Begin to watch; called once, before the program has got hold of anything of MXNet's."""
        backward_calls.install()
        watch_tracing()
        updates.install()
        loads.install()
        partial_loads.install()
        why = "a Trainer knows what is trained"
        replace(Trainer, "__init__", self._wrap_init, why=why, then=self._trainer_made)
        self._watch_calls()
        self._watch_first_pass()

    def stop(self) -> None:
        """Search no more: the script registers its blocks itself, or nothing can be saved."""
        super().stop()
        self._unwatch_calls()
        self._unwatch_passes()

    def reason(self) -> str | None:
        """The reason why nothing of the program, which ends now, was captured, as far as it shows."""
        if not self._had_pass or self.hook is not None or self.stopped:
            return None
        return "gradients were computed, but of no parameter of a gluon.Block that was called while autograd recorded"

    # The first backward pass, as long as no model is known.

    def _watch_first_pass(self) -> None:
        self._leave_pass = backward_calls.watch(self._pass)

    @unseen
    def _pass(self, heads: Any, run: Callable[[], Any]) -> Any:
        self._saw_pass()
        return run()

    @STEPS.fence("looking at a backward pass", again=True)
    def _saw_pass(self) -> None:
        self._had_pass = True
        self._unwatch_passes()

    def _unwatch_passes(self) -> None:
        self._leave_pass()

    # Parameters that are trained.

    def _wrap_init(self, original: Function) -> Function:
        def make_trainer(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(trainer, *args, **kwargs)
            self._trainer_made(trainer)
            return result

        return make_trainer

    @STEPS.fence("looking at a Trainer", again=True)
    def _trainer_made(self, trainer: Any) -> None:
        if self.expect(parameter for parameter in parameters_of(trainer) if can_be_trained(parameter)):
            self._asked_for_loose = False
            self._watch_calls()

    # Blocks being called.

    def _watch_calls(self) -> None:
        if self._unwatch is None:
            self._unwatch = block_calls.watch(self._call, Until.MODEL_IS_FOUND)

    def _unwatch_calls(self) -> None:
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch()

    @unseen
    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        depth = self._depth
        level = getattr(depth, "level", 0)
        run = original
        if level == 0 and not is_symbolic(args):
            if autograd.is_recording():
                run = self._counted_if_found(original, block) or original
            elif self.saw_training:
                self._evaluated(block)
        depth.level = level + 1
        try:
            return run(block, *args, **kwargs)
        finally:
            depth.level = level

    @STEPS.fence("looking for the model", again=True)
    def _counted_if_found(self, original: Callable[..., Any], block: Block) -> Callable[..., Any] | None:
        """A function that counts the rest of this call as a step, if the block has just become known."""
        if self.stopped:
            return None
        own = {id(parameter) for _, parameter in TrackedBlock(block).parameters() if can_be_trained(parameter)}
        if not own and is_a(block, LossBlock):
            return None
        found, are_loose = self._newly_known(block, own)
        if found is not None and self.hook is not None:
            if are_loose:
                self._add_loose_parameters(self.hook)
                found.last = self.hook.step
            self.hook.go_on_with(found)
            self._look_for_owner(block)
        self._calls_without_match += 1
        done = self.saw_training and not self.params_without_model()
        if done or self._calls_without_match > PATIENCE:
            self._unwatch_calls()
        if found is None or self.hook is None:
            return None
        counted = self.hook.count_call(original)
        self._uncounted = None
        return counted

    def _newly_known(self, block: Block, own: set[int]) -> tuple[TrackedBlock | None, bool]:
        """A block that has just become known by its parameters that are trained, and whether loose ones are, too."""
        if self._uncounted is not None and self._uncounted[0].model is block:
            # What followed has failed, and is tried again.
            return self._uncounted
        is_match = bool(own & self.params_without_model() if self.saw_training else own - self.known_params())
        are_loose = bool(own) and not is_match and self._trains_loose_parameters()
        found = self.adopt(block) if is_match or are_loose else None
        if found is not None:
            self._uncounted = found, are_loose
        return found, are_loose

    def _trains_loose_parameters(self) -> bool:
        """True if, after a first iteration in which no model was found, what is trained belongs to no block."""
        if self.hook is not None or not self._had_pass or self._asked_for_loose:
            return False
        self._asked_for_loose = True
        loose = self.params_without_model()
        return bool(loose) and not live_blocks.is_one_of_a_block(loose)

    def _add_loose_parameters(self, hook: Hook) -> None:
        """Save parameters that belong to no block as those of one of our own, around the block that is called."""
        if self._loose is None:
            known = (reference() for reference in self._pending_params.values())
            self._loose = block_of([parameter for parameter in known if parameter is not None])
        hook.add_owner(self._loose)
        self._pending_params.clear()
        self._count_missed(hook, own_parameters(self._loose))
        guard.say_once("loose", _LOOSE)

    @STEPS.fence("looking at an evaluation")
    def _evaluated(self, block: Block) -> None:
        updates.evaluated(parameter for _, parameter in TrackedBlock(block).parameters())

    def _look_for_owner(self, block: Block) -> None:
        """Know the block that this one is called as a part of, if it holds other parameters that are trained."""
        others = self.params_without_model()
        if self.hook is None or not others or any(owner.is_in({id(block)}) for owner in self.hook.owners):
            return
        owner = live_blocks.owner_of(block, others)
        if owner is not None:
            self.hook.add_owner(owner)
            for parameter in own_parameters(owner):
                self._pending_params.pop(id(parameter), None)

    def parts_of(self, model: Block) -> list[Block]:
        """A block and all blocks below it."""
        return TrackedBlock(model).parts()

    def track(self, hook: Hook, model: Block, inner: list[TrackedBlock]) -> TrackedBlock:
        """Count the steps of a block from now on."""
        self._unwatch_passes()
        self._count_missed(hook, (parameter for _, parameter in TrackedBlock(model).parameters()))
        return hook.add_model(model)

    @staticmethod
    def _count_missed(hook: Hook, parameters: Iterable[Parameter]) -> None:
        """Count the updates of these parameters before any model was known: steps begin with the program's first."""
        missed = updates.take_missed(parameters)
        if missed:
            if hook.position.open:
                hook.finish_step()
            hook.position.begin(hook.position.train, missed)
