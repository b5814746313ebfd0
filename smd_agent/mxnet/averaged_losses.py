"""Samples over which the losses of an update are means, where Gluon's Trainer divides by a number of them itself.

``usage/optimizer/<title>/averaged`` is how many samples the losses are means over, in all, from which the backward
passes before its update started; 0 if they are sums, or not reduced. ``usage/optimizer/<title>/averages`` is how many
such losses there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet import autograd

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.step_events import (
    AfterBackward,
    BeforeBackward,
    BeforeOptimizer,
    LayerCall,
    LayerReturn,
    OutsideReturn,
    StepEnd,
    on,
)
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.mxnet.arrays import arrays_in
from smd_agent.mxnet.loss_means import LossMeans
from smd_agent.mxnet.plain_access import adds_gradients, is_sparse, trainer_of, values_of
from smd_agent.mxnet.reached_parameters import Pair

# Losses of an update that are looked at; of one with more nothing is told.
_MOST = 16


class AveragedLosses(UsageProbe, domain=LOSS_FACTS, doing="looking at what a backward pass starts from"):
    """The losses of one step that is saved.

    Args:
        usage: takes the numbers.
        title_of: gives the title of a Trainer.
    """

    def __init__(self, usage: Usage, title_of: Callable[[Any], str]) -> None:
        super().__init__(usage, in_training=True)
        self._title_of = title_of
        self._means = LossMeans()
        self._depth = 0
        self._heads: list[int | None] = []
        # Of the passes that each Trainer's gradients come from, by its id.
        self._of_trainers: dict[int, list[int | None]] = {}
        self._told: set[str] = set()

    @on(LayerCall)
    def before_block(self, _: LayerCall) -> None:
        """A block of a model, or one that computes a loss, is about to be called."""
        self._depth += 1

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """Such a block has returned."""
        self._depth = max(self._depth - 1, 0)
        if autograd.is_recording():
            self._means.add(call.layer, call.inputs, call.outputs, not self._depth)

    @on(OutsideReturn)
    def after_outside(self, call: OutsideReturn) -> None:
        """A block of no model has returned."""
        if autograd.is_recording():
            self._means.add(call.layer, (), call.outputs, True)

    @on(BeforeBackward)
    def before_backward(self, backward: BeforeBackward) -> None:
        """A backward pass is about to begin, and the graph is there still."""
        heads = arrays_in(backward.tensors)
        self._heads = [self._means.samples_of(head) for head in heads] if len(heads) <= _MOST else [None]

    @on(AfterBackward)
    def after_backward(self, backward: AfterBackward) -> None:
        """The pass has given these parameters a gradient."""
        self._depth = 0
        heads, self._heads = self._heads, []
        pairs = [pair for pair in backward.reached if not is_sparse(pair[1])]
        for key, (_, parameter) in _by_trainers(pairs or [*backward.reached]).items():
            # Of several contexts each may have a pass of its own.
            adds = adds_gradients(parameter) or len(values_of(parameter)) != 1
            before = self._of_trainers.get(key, []) if adds else []
            self._of_trainers[key] = [*before, *heads][: _MOST + 1]

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """Save what the gradients that a Trainer is about to use come from."""
        heads = self._of_trainers.pop(id(use.optimizer), [])
        title = self._title_of(use.optimizer)
        if title in self._told:
            return
        self._told.add(title)
        known = [samples for samples in heads if samples is not None]
        if known and len(known) == len(heads) <= _MOST:
            means = [samples for samples in known if samples]
            # Beside a sum, a mean is a loss of less weight.
            numbers = (sum(means), len(means)) if len(means) == len(known) else (0, 0)
            self._usage.save(f"optimizer/{title}", dict(zip(("averaged", "averages"), numbers, strict=True)))

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of what was kept."""
        self._means.forget()
        self._of_trainers.clear()


def _by_trainers(pairs: list[Pair]) -> dict[int, Pair]:
    """One of the parameters of each Trainer, by its id."""
    return {id(trainer): pair for pair in pairs if (trainer := trainer_of(pair[1])) is not None}
