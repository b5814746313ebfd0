"""TRAIN or EVAL: by what a call of a model is told to train.

A model that is called in training mode, with gradients enabled, is trained. The counter in front of a model asks for
that in every step, so it has the two lines in place (``step_counter``); they also go by what is noted here of models
that are trained otherwise: in evaluation mode, as where only its dropout is to be off, or without gradients, as where
a batch is run in parts whose gradients are computed later.
"""

from __future__ import annotations

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework.step_events import AfterBackward, BeforeOptimizer, NewParameters, Probe, on
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.optimizer_watch import ids_of
from smd_agent.pytorch.plain_access import is_training


def follow_gradients(tracked: TrackedModule) -> None:
    """A model gets gradients in evaluation mode: tell its modes apart by whether they are enabled, and say so."""
    tracked.by_gradients = True
    line = f"{tracked.names.title} gets gradients in evaluation mode: its next calls train it where they are enabled"
    guard.say_once(("trained in evaluation", tracked), line)


def follow_mode(tracked: TrackedModule) -> None:
    """A model is trained by calls without gradients, too: its mode alone tells."""
    tracked.by_mode = True


class TrainedInEvaluation(Probe, domain=STEPS, doing="looking at the mode of a step"):
    """The models of one step of an evaluation that turns out to train them.

    Args:
        writer: of the step.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._position = writer.position
        self.wanted = writer.mode is ModeKeys.EVAL
        self._models: list[TrackedModule] = []
        self._had_pass = False

    @on(NewParameters)
    def add(self, new: NewParameters) -> None:
        """Look at this model too."""
        self._models.append(new.model)

    @on(AfterBackward)
    def after_backward(self, _: AfterBackward) -> None:
        """Gradients have been computed."""
        self._had_pass = True

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """An optimizer is about to update what was called in evaluation mode."""
        if self._had_pass:
            updated, step = ids_of(use.optimizer), self._position.step
            for tracked in [one for one in self._models if _is_trained(one, step, updated)]:
                follow_gradients(tracked)


def _is_trained(tracked: TrackedModule, step: int, updated: set[int]) -> bool:
    """True if a model was called in evaluation mode in this step, which is not known of it, and is updated."""
    model = tracked.model
    called = tracked.last == step and model is not None and not is_training(model)
    return called and not tracked.by_gradients and any(id(one) in updated for _, one in tracked.parameters())
