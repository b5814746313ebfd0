"""Finds the block being trained in a script that does not name it.

What is called outermost while autograd records, and has parameters to train, is trained. Until such a block is found,
and whenever a Trainer has parameters of no known block, every outermost call of a block is looked at; then ``Block`` is
as it was.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from mxnet import autograd
from mxnet.gluon import Block, Parameter, Trainer
from mxnet.gluon.loss import Loss as LossBlock

from smd_agent import session
from smd_agent.mxnet import backward, calls
from smd_agent.mxnet.arrays import is_symbolic
from smd_agent.mxnet.compiled import watch_tracing
from smd_agent.mxnet.hook import Hook
from smd_agent.mxnet.root import Root

_PATIENCE = 100


class Discovery:
    """Watches Trainers being made and, as long as it must, blocks being called.

    Args:
        make_hook: called once, when the first block is found.
    """

    def __init__(self, make_hook: Callable[[], Hook | None]) -> None:
        self._make_hook = make_hook
        self._hook: Hook | None = None
        self._trained: dict[int, weakref.ref[Parameter]] = {}
        self._leave: Callable[[], None] | None = None
        self._depth = threading.local()
        self._fruitless = 0
        self._over = False
        self._trainer_made_in = -1

    def install(self) -> None:
        """Begin to watch; called once, before the program has got hold of anything of MXNet's."""
        backward.install()
        watch_tracing()
        make_trainer = Trainer.__init__

        @functools.wraps(make_trainer)
        def wrapper(trainer: Any, *args: Any, **kwargs: Any) -> None:
            make_trainer(trainer, *args, **kwargs)
            self._trainer_made(trainer)

        Trainer.__init__ = wrapper
        self._watch_calls()

    @property
    def found_model(self) -> bool:
        """Whether a block has been found."""
        return self._hook is not None

    @property
    def stopped(self) -> bool:
        """Whether it has been told to look no further."""
        return self._over

    @property
    def saw_training(self) -> bool:
        """Whether the program has shown that it trains."""
        return bool(self._trained)

    def stop(self) -> None:
        """Look no further: the script registers its blocks itself, or nothing can be saved."""
        self._over = True
        self._unwatch_calls()

    @session.fence("looking at a Trainer")
    def _trainer_made(self, trainer: Any) -> None:
        if self._over:
            return
        for parameter in trainer._params:
            if parameter.grad_req != "null":
                self._trained[id(parameter)] = weakref.ref(parameter)
        self._fruitless = 0
        self._trainer_made_in = -1 if self._hook is None else self._hook.step
        if self._homeless():
            self._watch_calls()

    def _homeless(self) -> set[int]:
        """Trained parameters that are alive and belong to no known block."""
        known = {id(parameter) for root in self._roots() for _, parameter in root.parameters()}
        self._trained = {key: ref for key, ref in self._trained.items() if ref() is not None}
        return self._trained.keys() - known

    def _roots(self) -> list[Root]:
        return self._hook.roots if self._hook is not None else []

    # Blocks being called.

    def _watch_calls(self) -> None:
        if self._leave is None:
            self._leave = calls.watch(self._call)

    def _unwatch_calls(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()

    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        depth = self._depth
        level = getattr(depth, "level", 0)
        if level == 0 and not is_symbolic(args) and autograd.is_recording() and self._look_at(block):
            # By way of the counter that the block has got now.
            return block(*args, **kwargs)
        depth.level = level + 1
        try:
            return original(block, *args, **kwargs)
        finally:
            depth.level = level

    @session.fence("looking for the model")
    def _look_at(self, block: Block) -> bool:
        """Whether the block has just become known."""
        if self._over or isinstance(block, LossBlock):
            return False
        homeless = self._homeless()
        candidates = [parameter for _, parameter in Root(block).parameters() if parameter.grad_req != "null"]
        known = {id(parameter) for root in self._roots() for _, parameter in root.parameters()}
        if self._trained:
            fits = any(id(parameter) in homeless for parameter in candidates)
        else:
            fits = any(id(parameter) not in known for parameter in candidates)
        adopted = fits and self._adopt(block)
        self._fruitless += 1
        if (self._trained and not self._homeless()) or self._fruitless > _PATIENCE:
            self._unwatch_calls()
        return adopted

    def _adopt(self, block: Block) -> bool:
        hook = self._hook_in_use()
        if hook is None:
            self.stop()
            return False
        self._fruitless = 0
        inside = {id(part) for part in Root(block).blocks()}
        for root in [*hook.roots]:
            if id(root.block) in inside:
                hook.remove_root(root)
        root = hook.add_root(block)
        if self._trainer_made_in == hook.step:
            # A training that was prepared after the last step of another one does not belong to that step.
            root.last = hook.step
        return True

    def _hook_in_use(self) -> Hook | None:
        if self._hook is None:
            existing = session.current()
            if isinstance(existing, Hook):
                # The script made a hook. If it registers blocks, it also knows which; else ours join it.
                self._hook = None if existing.roots else existing
            else:
                self._hook = self._make_hook()
        return self._hook
