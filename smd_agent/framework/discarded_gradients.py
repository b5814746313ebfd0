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

from collections.abc import Hashable
from typing import Any, NamedTuple

from smd_agent.core.failure_domains import GRADIENT_FACTS
from smd_agent.framework.followed_parameters import FollowedParameters, Gradients, State
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

_MOST = 16
_FRAMES = 64


class _Pass(NamedTuple):
    """A backward pass.

    place: of the program that has started it.
    gradients: what they were after it, by the ids of their parameters.
    weights: the versions of those parameters.
    """

    place: int
    gradients: dict[int, State]
    weights: dict[int, Hashable]


class _Discarded(NamedTuple):
    """A pass whose gradients were cleared.

    place: of the program that has started it.
    keys: the ids of the parameters that had a gradient.
    cleared: whether nothing is left of these; a bool of the framework, None if they are not there any more.
    """

    place: int
    keys: set[int]
    cleared: Any


class DiscardedGradients(UsageProbe, domain=GRADIENT_FACTS, doing="looking at which gradients are discarded"):
    """The gradients of one step that is saved.

    Args:
        usage: takes the numbers.
        gradients: knows those of the framework.
    """

    def __init__(self, usage: Usage, gradients: Gradients) -> None:
        super().__init__(usage, in_training=True)
        self._of_framework = gradients
        self._parameters = FollowedParameters(gradients)
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
        self._weights: dict[int, Any] = {}
        self._gradients: dict[int, Any] = {}

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Look at the gradients of these too, of a model."""
        trained = [parameter for _, parameter in new.pairs if self._of_framework.can_be_trained(parameter)]
        self._parameters.add(trained[:: len(trained) // _MOST + 1])

    @on(BeforeBackward)
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
        if self._parameters.versions(last.weights) != last.weights:
            self._begin_anew()
            return
        left = self._parameters.added_to(last.gradients)
        if any(self._of_framework.state_of(gradient) == last.gradients[key] for key, gradient in left.items()):
            # They are accumulated.
            self._discarded.clear()
            return
        cleared = self._of_framework.are_cleared([*left.values()]) if left else None
        self._discarded.append(_Discarded(last.place, {*last.gradients}, cleared))
        self._weights = self._weights or self._of_framework.parts_of(self._parameters.weights(last.weights))

    @on(AfterBackward)
    def after_backward(self, backward: AfterBackward) -> None:
        """The pass has added to them, or put its own in their place."""
        if self._updating:
            return
        self._passes += 1
        reached = {id(parameter) for _, parameter in backward.reached}
        if reached and self._discarded and not self._discarded[-1].keys <= reached:
            # What it has not reached is there still.
            self._discarded.clear()
        found = self._parameters.gradients(self._parameters.keys)
        states = {key: self._of_framework.state_of(gradient) for key, gradient in found.items()}
        self._last = _Pass(self._place, states, self._parameters.versions(found)) if found else None
        self._gradients = self._of_framework.parts_of(found) if self._discarded else {}

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """An optimizer is about to use gradients."""
        self._updating = True
        title, last = self._of_framework.title_of(use.optimizer), self._last
        if last is None or title in self._told:
            return
        own = self._of_framework.ids_of(use.optimizer)
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

    def _count(self, used: dict[int, Any], last: _Pass) -> Any:
        """Number of discarded passes, for an optimizer that is going to use these gradients, by their parameters."""
        alike = [one for one in self._discarded if one.place == last.place and used.keys() <= one.keys]
        if not alike or any(id(one) != last.gradients.get(key, (0, 0))[0] for key, one in used.items()):
            return 0.0
        if not used.keys() <= self._gradients.keys() & self._weights.keys():
            return 0.0
        compare = self._of_framework
        signs = [compare.are_parallel(*_alike(compare.parts_of(used), self._gradients))]
        if not self._updated:
            if self._parameters.versions(used) != {key: last.weights[key] for key in used}:
                return 0.0
            weights = compare.parts_of(self._parameters.weights(used))
            signs.append(compare.are_same(*_alike(weights, self._weights)))
        # Else the last pass has added to what was put there.
        signs.append(self._discarded[-1].cleared)
        return sum(compare.all_of([sign for sign in (*signs, one.cleared) if sign is not None]) for one in alike)


def _alike(parts: dict[int, Any], before: dict[int, Any]) -> tuple[list[Any], list[Any]]:
    """Parts, and those of the same keys before."""
    return [*parts.values()], [before[key] for key in parts]
