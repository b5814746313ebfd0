"""Counts the boosting rounds of one training and has those saved that are due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xgboost.callback import TrainingCallback

from smd_agent import guard, session
from smd_agent.xgboost.products import EvalsLog, Products, Training

if TYPE_CHECKING:
    from smd_agent.xgboost.hook import Hook


class Rounds(TrainingCallback):
    """A callback for one training.

    A round is a step. The first training of a process begins at step 0; one that follows goes on where the last one
    ended, so that no step is written twice.

    Should be the first callback of its training: XGBoost calls none after one that stops the training. (Before
    XGBoost 2 it keeps callbacks in a set, so a round that was missed for this reason is saved when training ends.)
    """

    def __init__(self, hook: Hook, training: Training) -> None:
        super().__init__()
        self._hook = hook
        self._pulse = hook.pulse
        self._products = Products(hook, training)
        self._first = 0
        self._rounds_before = 0
        self._open: tuple[Any, int, EvalsLog] | None = None
        self._closed = False

    def before_training(self, model: Any) -> Any:
        """Find out the number of the first step."""
        self._begin(model)
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Hand the last round to the disk: what its callbacks had to add has been added."""
        if self._pulse.open:
            self._end_step()
        self._open = (model, epoch, evals_log)
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Count a round, and save it if it is due; training goes on."""
        self._open = None
        pulse = self._pulse
        clock = pulse.clock = pulse.train
        pulse.step = clock.step = self._first + epoch
        if clock.step >= clock.due:
            self._save(model, evals_log)
        return False

    def after_training(self, model: Any) -> Any:
        """Put on disk what has been saved."""
        self.close()
        return model

    def close(self) -> None:
        """Put on disk what has been saved, also of a training that failed. Repeating it is harmless."""
        if not self._closed:
            self._closed = True
            self._end()

    @session.fence("looking at a model")
    def _begin(self, model: Any) -> None:
        if self._pulse.open:
            self._hook.end_step()
        self._first = self._pulse.step + 1
        self._rounds_before = _rounds_of(model)
        if self._first:
            line = f"another training begins: its rounds are numbered from {self._first} on"
            guard.say_once("another training", line)

    @session.fence("saving a round")
    def _save(self, model: Any, evals_log: EvalsLog) -> None:
        if self._hook.open_step():
            self._products.save(model, evals_log)

    @session.fence("saving a round")
    def _end_step(self) -> None:
        self._hook.end_step()

    @session.fence("saving the last rounds")
    def _end(self) -> None:
        if self._open is not None:
            model, epoch, evals_log = self._open
            # A callback may also have ended the training before the round was made.
            if _rounds_of(model) == self._rounds_before + epoch + 1:
                self.after_iteration(model, epoch, evals_log)
        self._open = None
        self._hook.flush()


def _rounds_of(model: Any) -> int:
    # What cross-validation calls a model is a list of them.
    first = model.cvfolds[0].bst if hasattr(model, "cvfolds") else model
    return int(first.num_boosted_rounds())
