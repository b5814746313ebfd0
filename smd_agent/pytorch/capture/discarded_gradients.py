"""Gradients that are cleared before any update has used them.

``usage/optimizer/<title>/discarded_passes`` is how many backward passes of a step gave all that the optimizer is going
to use a gradient, which was cleared before the pass that it does use; ``usage/optimizer/<title>/passes`` is how many
backward passes came before its update. Up to 16 parameters of a model are looked at.

A program may differentiate more than once for one update, and mean it: to perturb its weights, to measure gradients, to
put them together by itself. So a pass counts only where it was started from the same place of the program as the one
that is used, in the same loop; where nothing has changed weights since; and where the update uses, but for a factor,
what that last pass has left.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch

from smd_agent.core.domains import GRADIENT_FACTS
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.step_events import (
    AfterBackward,
    AfterUpdate,
    BeforeBackward,
    BeforeOptimizer,
    NewParameters,
    StepEnd,
    on,
)
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.interpreter.callers import callers, place
from smd_agent.pytorch.arrays import local_of
from smd_agent.pytorch.capture.followed_parameters import FollowedParameters, State, state_of
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.updates import ids_of

_MOST = 16
_FRAMES = 64
# Elements of each weight and gradient that are compared, and how far from parallel rounding takes gradients.
_ELEMENTS = 64
_NOISE = 1e-2

Parts = dict[int, torch.Tensor]


class _Pass(NamedTuple):
    """A backward pass.

    place: of the program that has started it.
    gradients: what they were after it, by the ids of their parameters.
    weights: the versions of those parameters.
    """

    place: int
    gradients: dict[int, State]
    weights: dict[int, int]


class _Discarded(NamedTuple):
    """A pass whose gradients were cleared.

    place: of the program that has started it.
    keys: the ids of the parameters that had a gradient.
    left: l2 of what is left of these, which is 0 if they were cleared.
    """

    place: int
    keys: set[int]
    left: torch.Tensor | None


class DiscardedGradients(UsageProbe, domain=GRADIENT_FACTS, doing="looking at which gradients are discarded"):
    """The gradients of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._parameters = FollowedParameters()
        self._told: set[str] = set()
        self._updating = False
        self._place = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._passes = 0
        self._updated = False
        self._last: _Pass | None = None
        self._discarded: list[_Discarded] = []
        # Parts of weights before, and of gradients after, a pass that follows on one that was discarded.
        self._weights: Parts = {}
        self._gradients: Parts = {}

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Look at the gradients of these too, of a model."""
        trained = [parameter for _, parameter in new.pairs if parameter.requires_grad]
        self._parameters.add(trained[:: len(trained) // _MOST + 1])

    @on(BeforeBackward)
    @without_gradients
    def before_backward(self, _: BeforeBackward) -> None:
        """A backward pass is about to add to gradients."""
        if self._updating:
            return
        if self._updated:
            self._begin_anew()
        self._place = place(callers(), _FRAMES)
        last, self._last = self._last, None
        if last is None:
            return
        if self._versions(last.weights) != last.weights:
            self._begin_anew()
            return
        changed = []
        for key, state in last.gradients.items():
            gradient = self._parameters.gradient(key)
            if gradient is not None:
                if state_of(gradient) == state:
                    # They are accumulated.
                    self._discarded.clear()
                    return
                changed.append(gradient)
        self._discarded.append(_Discarded(last.place, {*last.gradients}, _length(changed) if changed else None))
        self._weights = self._weights or _parts(self._parameters.weights(last.weights))

    @on(AfterBackward)
    @without_gradients
    def after_backward(self, _: AfterBackward) -> None:
        """The pass has added to them."""
        if not self._updating:
            self._passes += 1
            found = self._parameters.gradients(self._parameters.keys)
            states = {key: state_of(gradient) for key, gradient in found.items()}
            self._last = _Pass(self._place, states, self._versions(found)) if found else None
            self._gradients = _parts(found) if self._discarded else {}

    @on(BeforeOptimizer)
    @without_gradients
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """An optimizer is about to use gradients."""
        self._updating = True
        title, last = title_of(use.optimizer), self._last
        if last is None or title in self._told:
            return
        own = ids_of(use.optimizer)
        used = self._parameters.gradients(key for key in self._parameters.keys if key in own)
        if used:
            self._told.add(title)
            numbers = {"passes": self._passes, "discarded_passes": self._count(used, last)}
            self._usage.save(f"optimizer/{title}", numbers)

    @on(AfterUpdate)
    def after_update(self, _: AfterUpdate) -> None:
        """The update has used them."""
        self._updating = False
        self._updated = True

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """The step ends."""
        self._begin_anew()
        self._parameters.clear()

    def _count(self, used: dict[int, torch.Tensor], last: _Pass) -> torch.Tensor | float:
        """Number of discarded passes, for an optimizer that is going to use these gradients, by their parameters."""
        alike = [one for one in self._discarded if one.place == last.place and used.keys() <= one.keys]
        if not alike or any(id(one) != last.gradients.get(key, (0, 0))[0] for key, one in used.items()):
            return 0.0
        if not used.keys() <= self._gradients.keys() & self._weights.keys():
            return 0.0
        certain = _are_parallel(_parts(used), self._gradients)
        if not self._updated:
            if self._versions(used) != {key: last.weights[key] for key in used}:
                return 0.0
            certain = certain & _are_same(_parts(self._parameters.weights(used)), self._weights)
        # Else the last pass has added to what was put there.
        certain = certain & _is_cleared(self._discarded[-1], certain)
        return torch.stack([certain & _is_cleared(one, certain) for one in alike]).sum()

    def _versions(self, keys: Iterable[int]) -> dict[int, int]:
        return {key: weight._version for key, weight in self._parameters.weights(keys).items()}


def _length(gradients: list[torch.Tensor]) -> torch.Tensor:
    """The sum of the l2 of gradients."""
    lengths = [torch.linalg.vector_norm(local_of(one).detach()) for one in gradients]
    return torch.stack([length.to(lengths[0].device, torch.float32) for length in lengths]).sum()


def _is_cleared(discarded: _Discarded, like: torch.Tensor) -> torch.Tensor:
    left = discarded.left
    return torch.ones_like(like) if left is None else left.to(like.device) == 0


def _parts(tensors: dict[int, torch.Tensor]) -> Parts:
    """A copy of a part of each tensor: float32, in one dimension."""
    return {
        key: local_of(one).detach().reshape(-1)[:_ELEMENTS].to(torch.float32, copy=True) for key, one in tensors.items()
    }


def _are_parallel(parts: Parts, before: Parts) -> torch.Tensor:
    """True if gradients have changed by one positive factor at most: of shape ()."""
    now, then = _joined(parts, parts), _joined(before, parts)
    lengths = torch.linalg.vector_norm(now) * torch.linalg.vector_norm(then)
    parallel: torch.Tensor = lengths - now.dot(then) <= _NOISE * lengths
    return parallel


def _are_same(parts: Parts, before: Parts) -> torch.Tensor:
    """True if weights are as they were: of shape ()."""
    return (_joined(parts, parts) == _joined(before, parts)).all()


def _joined(parts: Parts, keys: Iterable[int]) -> torch.Tensor:
    found = [parts[key] for key in keys]
    return torch.cat([part.to(found[0].device) for part in found])
