"""The models that a hook knows, and what is asked of all of them; a part of the hook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.plain_access import is_a
from smd_agent.guard import say_once
from smd_agent.pytorch.model.first_update import is_to_come_after_a_move
from smd_agent.pytorch.model.gone_models import GoneModels
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.training_threads import TrainingThreads, is_of_this_thread

_IDLE = 100


class KnownModels(FrameworkHook):
    """Base of the hook.

    Attributes:
        models: those that are known.
        gone: those that the program has let go of, as far as their weights are to be saved.
        threads: whose steps are saved.
        over_at: the last step before a model was called that was not known, and that began another one.
        have_moved: whether parameters have changed without an update, since the last model became known.
    """

    models: list[TrackedModule]
    gone: GoneModels
    threads: TrainingThreads
    have_moved: bool
    over_at: int

    def trained_params(self) -> set[int]:
        """Ids of the parameters of all known models."""
        return {id(parameter) for tracked in self.models for _, parameter in tracked.parameters()}

    def parameters_by_model(self) -> Iterator[list[torch.Tensor]]:
        """The parameters of each of them."""
        for tracked in self.models:
            yield [parameter for _, parameter in tracked.parameters()]

    @apart
    def left_weights(self) -> Mapping[str, torch.Tensor]:
        """The parameters by name, as the last update has left them; none where the program has changed them since."""
        if not self.position.ends_with_update:
            return {}
        used = [tracked for tracked in self.models_in_use() if tracked.model is not None]
        if not used:
            return self.gone.weights()
        found = [[*tracked.parameters()] for tracked in used]
        as_left = updates.marks.are_left([one for _, one in pairs] for pairs in found)
        known = (pair for pairs in found for pair in pairs) if as_left else ()
        return {name: one for name, one in known if not is_a(one, UninitializedParameter)}

    def step_ended(self) -> int:
        """The training step that has ended last; -1 while one is under way."""
        under_way = self.position.awaits_update or self.recorder.interrupted is not None
        return -1 if under_way else self.position.train.step

    def were_updated(self) -> bool:
        """True if parameters or, without an optimizer, gradients of models have changed since the last time."""
        by_gradients = not updates.has_optimizer()
        # All are asked, as each takes note of its state.
        changed = [tracked.was_updated(by_gradients) for tracked in self.models]
        return any(changed) and not updates.in_progress() and not self._is_first_move()

    def _is_first_move(self) -> bool:
        """True if parameters have changed for the first time, by what is no update yet."""
        moved, self.have_moved = self.have_moved, True
        called = [tracked for tracked in self.models if tracked.last == self.step]
        return not moved and is_to_come_after_a_move(called)

    def updated_without_call(self, parameters: set[int]) -> None:
        """Say of a model that is gone that its parameters, of these ids, are trained on."""
        for kind in self.classes_gone() if parameters.isdisjoint(self.trained_params()) else ():
            line = (
                f"{kind} is gone, and what it was made of is trained on, as where a module is made anew in each "
                "iteration: nothing is saved of that"
            )
            say_once(("trained on", kind), line)

    def models_in_use(self) -> list[TrackedModule]:
        """The models without those that have not been called for many steps, and those of other threads.

        Nor is one that has not been called since another one came up, whose training may be over; called it is in use.
        """
        ends = {id(tracked): self.over_at if tracked.calls.any else -1 for tracked in self.models}
        used = [one for one in self.models if one.last < 0 or ends[id(one)] < one.last >= self.step - _IDLE]
        several = self.threads.several
        return [one for one in used if is_of_this_thread(one.calls.thread) and (one.calls.any or not several)]

    def classes_trained(self) -> set[str]:
        """Names of the classes of the models, and of those that a loaded copy has taken the place of."""
        return {tracked.names.kind for tracked in self.models}

    def classes_gone(self) -> set[str]:
        """Names of the classes of those that the program has let go of."""
        return {tracked.names.kind for tracked in self.models if tracked.model is None}
