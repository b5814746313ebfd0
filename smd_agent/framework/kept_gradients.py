"""Gradients that an update uses a second time, because nothing has cleared them.

``usage/optimizer/<title>/kept_gradient`` is the l2 of what the gradients of an optimizer held before the step's first
backward pass, of those that nothing has cleared: not before the passes that added to them, nor before the update that
used them, nor between the update and the end of the step; 0 if there is none. Up to 64 parameters are looked at, and of
a large one a part; see ``training_facts.sample``.

That it is not cleared on either side of the update tells a forgotten ``zero_grad`` from gradients that are accumulated
over several passes, and from those that one model's loss leaves in another model until that is cleared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smd_agent.core.failure_domains import GRADIENT_FACTS
from smd_agent.framework.followed_parameters import FollowedParameters, Gradients, State
from smd_agent.framework.step_events import AfterBackward, AfterUpdate, BeforeBackward, NewParameters, StepEnd, on
from smd_agent.framework.usage import Usage, UsageProbe

_MOST = 64


class KeptGradients(UsageProbe, domain=GRADIENT_FACTS, doing="looking at which gradients were kept"):
    """The gradients of one step that is saved.

    Args:
        usage: takes the numbers.
        gradients: knows those of the framework.
    """

    def __init__(self, usage: Usage, gradients: Gradients) -> None:
        super().__init__(usage, in_training=True)
        self._gradients = gradients
        self._parameters = FollowedParameters(gradients)
        self._had_pass = False
        # By the ids of their parameters: l2 before the first pass, and what they were when they were looked at last.
        self._before: dict[int, Any] = {}
        self._states: dict[int, State] = {}
        # The parameters that each optimizer has updated.
        self._updated: dict[str, set[int]] = {}

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Look at the gradients of these too."""
        self._parameters.add(parameter for _, parameter in new.pairs if self._gradients.can_be_trained(parameter))

    @on(BeforeBackward)
    def before_backward(self, _: BeforeBackward) -> None:
        """A backward pass is about to add to gradients."""
        if self._had_pass:
            self._drop_changed()
            return
        self._had_pass = True
        keys = self._parameters.keys
        found = self._parameters.added_to(keys[:: len(keys) // _MOST + 1])
        self._before = dict(zip(found, self._gradients.lengths([*found.values()]), strict=True))
        self._states = {key: self._gradients.state_of(gradient) for key, gradient in found.items()}

    @on(AfterBackward)
    def after_backward(self, _: AfterBackward) -> None:
        """The pass has added to them, in place."""
        self._note(self._before)

    @on(AfterUpdate)
    def after_update(self, update: AfterUpdate) -> None:
        """An optimizer has used them."""
        if self._had_pass:
            own = self._gradients.ids_of(update.optimizer)
            self._updated.setdefault(self._gradients.title_of(update.optimizer), set()).update(own)
            # Gradients may have been clipped and unscaled in place, which leaves what was there in them.
            self._note(own & self._before.keys())

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what has been seen, if there was a backward pass and an update."""
        updated, self._updated = self._updated, {}
        gone = {key for key in self._before if self._parameters.weight(key) is None}
        self._drop_changed()
        for title, keys in updated.items():
            if keys & gone:
                # Nobody knows whether they would have been cleared.
                continue
            lengths = [length for key, length in self._before.items() if key in keys]
            kept = self._gradients.length_of_all(lengths) if lengths else 0.0
            self._usage.save(f"optimizer/{title}", {"kept_gradient": kept})
        self._before.clear()
        self._parameters.clear()

    def _note(self, keys: Iterable[int]) -> None:
        """Take note of gradients as they are; one in whose place another one stands has been cleared."""
        there = self._parameters.added_to(keys)
        for key in [*keys]:
            if key in there and id(there[key]) == self._states[key][0]:
                self._states[key] = self._gradients.state_of(there[key])
            else:
                del self._before[key]

    def _drop_changed(self) -> None:
        """Forget gradients that something else than a backward pass or an update has changed: they were cleared."""
        there = self._parameters.added_to(self._before)
        for key in [*self._before]:
            if key not in there or self._gradients.state_of(there[key]) != self._states[key]:
                del self._before[key]
