"""The boosting rounds of a training, counted as steps: a second training goes on where the first one ended."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from smd_agent import guard
from smd_agent.core.clock import RunPosition
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.ports import StepSink
from smd_agent.core.requests import Requests
from smd_agent.core.series import Series
from smd_agent.framework.boosting.every_round import EveryRound
from smd_agent.framework.boosting.saved_round import SavedRounds
from smd_agent.framework.series_pauses import StepsAtRest


class RoundRecorder(Protocol):
    """Opens and closes steps whose position the rounds advance; a hook's recorder does."""

    series: Series
    requests: Requests

    @property
    def position(self) -> RunPosition:
        """The position of the run."""

    def open_step(self) -> bool:
        """Decide about the step that has just begun; whether it is saved."""

    def sink_of_step(self, saves: Collection[str] = ()) -> StepSink | None:
        """Open the current step, though it is not due, to save these collections; None: nothing is written."""

    def end_step(self) -> None:
        """Hand what the current step has saved to the disk."""

    def flush(self) -> None:
        """Hand the current step to the disk and wait until it is there."""


class RoundStopper:
    """Ends a training behind the round that is over.

    Args:
        library: whose training it is, in words.

    Attributes:
        ends: whether no round is to follow.
    """

    def __init__(self, library: str) -> None:
        self._library = library
        self.ends = False

    def after_step(self) -> str:
        """Have the library make no further round."""
        self.ends = True
        return self._library

    def is_ignored(self) -> bool:
        """A round that follows is of another training."""
        return False

    def before_update(self, end: Callable[[], object]) -> bool:
        """The round is over when it is counted."""
        return False


class Rounds:
    """Saves the rounds of one training; a library's subclass is, or makes, the callbacks that call it.

    A round is a step. The first training of a process begins at step 0; one that follows goes on where the last one
    ended, so that no step is written twice.

    Args:
        steps: opens and closes the steps.
        saved: saves what is due of a round.
        rests: between the rows of the run's series; those of this training alone if None.
        saves_last: gives, when the training has ended, the collections that its last round saves in any case; None:
            it saves none.

    Attributes:
        stopper: says whether another round is to follow.
    """

    def __init__(
        self,
        steps: RoundRecorder,
        saved: SavedRounds,
        rests: StepsAtRest | None = None,
        saves_last: Callable[[], Collection[str]] | None = None,
    ) -> None:
        super().__init__()
        self._steps = steps
        self._position = steps.position
        self._saved = saved
        self._rests = StepsAtRest() if rests is None else rests
        self._every = EveryRound(steps.series, saved.library, self._rests)
        self.stopper = RoundStopper(saved.library.title)
        steps.requests.stopper = self.stopper
        self._saves_last = saves_last
        # The round that has ended last, unless it is saved.
        self._unsaved: tuple[Any, Any] | None = None
        self._first = 0
        self._closed = False

    def callbacks(self) -> list[Any]:
        """The callbacks that the library is to call, before all of the program's."""
        return [self]

    @STEPS.fence("looking at a model", again=True)
    def begin(self, model: Any) -> None:
        """Find out the number of the first step."""
        if self._position.open:
            self._steps.end_step()
        self._first = self._position.step + 1
        self._rests.begin_anew()
        self.look_at(model)

    @STEPS.fence("saving a round")
    def end_round(self) -> None:
        """Hand the last round to the disk: what the program's callbacks had to add has been added."""
        if self._position.open:
            self._steps.end_step()

    @STEPS.fence("saving a round")
    def after_round(self, number: int, model: Any, log: Any) -> None:
        """Count a round, and save it if it is due.

        Args:
            number: of the round in this training, from 0 on.
            model: the library's model, or what it has in its place in a cross-validation.
            log: what the library tells a callback of the round's metrics.
        """
        position = self._position
        clock = position.train
        # Rounds have one numbering, whatever their mode.
        clock.step = position.step
        is_due = position.begin(clock, self._first + number - position.step)
        self._every.ended(model, log)
        self._unsaved = None if self._saves_last is None else (model, log)
        if is_due:
            self._save(model, log)

    @STEPS.fence("saving the last rounds")
    def close(self) -> None:
        """Put on disk what has been saved, also of a training that failed. Repeating it is harmless."""
        if not self._closed:
            self._closed = True
            self.save_missed_round()
            self._every.end()
            self._save_last()
            self._steps.flush()

    # What a library may add.

    def look_at(self, model: Any) -> None:
        """Take note of the model that is about to be trained."""

    def save_missed_round(self) -> None:
        """Save the last round of a training, if the library has not told of it."""

    # How it is done.

    def _save(self, model: Any, log: Any) -> None:
        if self._steps.open_step():
            if self._first > self._position.before + 1:
                line = f"another training begins: its rounds are numbered from {self._first} on"
                guard.say_once("another training", line)
            self._unsaved = None
            self._saved.save(model, log)

    def _save_last(self) -> None:
        unsaved, self._unsaved = self._unsaved, None
        names = () if unsaved is None or self._saves_last is None else self._saves_last()
        if unsaved is not None and names and self._steps.sink_of_step(names) is not None:
            self._saved.save(*unsaved)
