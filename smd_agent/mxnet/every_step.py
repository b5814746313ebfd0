"""The numbers of each training step of Gluon, saved or not: loss, learning rate, time, and the scale of AMP.

A loss is known some steps later, as the engine computes it; see ``late_losses``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple

from mxnet.ndarray import NDArray

from smd_agent.core.modes import ModeKeys
from smd_agent.core.recorder import Recorder
from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.plain_access import bases_of, elements_of, is_a, own_dict
from smd_agent.framework.replaced_functions import Function, Patch, Until
from smd_agent.framework.series_pauses import StepTimes
from smd_agent.framework.series_rows import LEARNING_RATE, LOSS, SECONDS, At, fence
from smd_agent.framework.wrong_steps import WrongSteps
from smd_agent.mxnet.arrays import arrays_in
from smd_agent.mxnet.backward_calls import passes
from smd_agent.mxnet.late_losses import Sum, Sums
from smd_agent.mxnet.plain_access import can_be_trained
from smd_agent.mxnet.trainer_watch import updates

NAMES: tuple[str, ...] = (LOSS, LEARNING_RATE, SECONDS)
NAMES_OF_SCALED: tuple[str, ...] = (*NAMES, "series/loss_scale", "series/skipped")

# Rows whose loss is yet to be computed: a program that never looks at one may be that far ahead of the engine.
_MOST = 4096


class _Part(NamedTuple):
    """The losses that one update follows, and by what AMP has multiplied them."""

    sums: tuple[Sum, ...]
    scale: float


class _Numbers:
    """The numbers of one step, as far as they are known.

    ``parts``: of its loss; ``sums``: of the part that no update has followed yet.
    """

    __slots__ = ("at", "parts", "rate", "scale", "seconds", "skipped", "sums")

    def __init__(self, at: At) -> None:
        self.at = at
        self.parts: list[_Part] = []
        self.sums: list[Sum] = []
        self.rate = self.scale = self.skipped = ABSENT
        # From the end of the step before; not known until it has ended.
        self.seconds = ABSENT

    def end_part(self, scale: float) -> None:
        """An update follows the losses so far."""
        if self.sums:
            self.parts.append(_Part((*self.sums,), scale))
            self.sums.clear()


_NO_STEP = _Numbers(At(-2, ModeKeys.GLOBAL, -2))


class _Row(NamedTuple):
    """A row whose loss is yet to be computed."""

    at: At
    names: tuple[str, ...]
    parts: tuple[_Part, ...]
    others: tuple[float, ...]


class LateRows:
    """The rows that are on their way, the oldest first.

    Args:
        series: takes them.
        wrong: is told of losses.
    """

    def __init__(self, series: Series, wrong: WrongSteps) -> None:
        self._series = series
        self._wrong = wrong
        self._rows: deque[_Row] = deque()
        self._lock = threading.Lock()

    def take(self, row: _Row) -> None:
        """Take a row; it is written once all before it are."""
        self._rows.append(row)
        self.settle()

    def settle(self, wait: bool = False) -> None:
        """Write the rows whose losses are known; all of them if asked to wait."""
        if not self._rows or not self._lock.acquire(blocking=wait):
            return
        try:
            while self._rows:
                row = self._rows[0]
                sums = [one for part in row.parts for one in part.sums]
                if wait:
                    for one in sums:
                        one.wait()
                elif not all(one.is_known() for one in sums) and len(self._rows) <= _MOST:
                    return
                self._rows.popleft()
                loss = _loss_of(row.parts)
                self._series.add_at(STEPS_TABLE, *row.at, row.names, (loss, *row.others))
                # Where the scale of AMP overflows, the update is left out, and the next scale is smaller.
                if self._wrong.wanted and not (row.names is NAMES_OF_SCALED and row.others[-1] == 1.0):
                    self._wrong.saw(row.at, loss)
        finally:
            self._lock.release()

    def drop(self) -> None:
        """Forget them all, in a process that a fork has made."""
        self._rows, self._lock = deque(), threading.Lock()


class EveryStep:
    """The step that is under way.

    Its row is made when the update that ends it has come, and again, complete, if more comes before the next step
    begins. Where no update is seen to end steps, it is made once the next one has begun.

    Args:
        recorder: of the hook.
        wrong: is told of losses.
    """

    def __init__(self, recorder: Recorder, wrong: WrongSteps) -> None:
        self._recorder = recorder
        self._wrong = wrong
        self._times = StepTimes(updates, (passes,), recorder.series.budget)
        self._names = NAMES
        self.drop()

    def drop(self) -> None:
        """Forget everything."""
        self._late = LateRows(self._recorder.series, self._wrong)
        self._sums = Sums()
        self._now = self._last = _NO_STEP
        self._thread = 0
        # Seconds that the row of the current step has taken the program's thread: where the program waits for the
        # engine later, its steps do not show that.
        self._took = 0.0
        self._times.begin_anew()

    def follow(self) -> None:
        """Have passes and updates told of, if anybody wants that."""
        if self._recorder.series.wanted:
            passes.listener = self
            updates.tell(self)

    # What is told.

    @fence("looking at a backward pass")
    def pass_begins(self, heads: Any) -> None:
        """A backward pass begins from these arrays."""
        begun = perf_counter()
        if self._takes():
            self._late.settle()
            for array in [heads] if is_a(heads, NDArray) else arrays_in(heads):
                found = self._sums.of(array)
                if found is not None:
                    self._now.sums.append(found)
            self._took += perf_counter() - begun

    @fence("looking at an update")
    def before_update(self, trainer: Any) -> Callable[[], object] | None:
        """A Trainer is about to update; the result is to be called when it has done so, or failed to."""
        if not self._takes():
            return None
        now, own = self._now, own_dict(trainer)
        scaler = own.get("_amp_loss_scaler")
        scale = 1.0 if scaler is None else float(own_dict(scaler)["_loss_scale"])
        now.end_part(scale)
        if scaler is not None:
            now.scale = scale
        if now.rate is not ABSENT:
            return None
        optimizer = own.get("_optimizer")
        settings = own_dict(optimizer)
        if settings.get("lr_scheduler") is None:
            first = next(filter(can_be_trained, elements_of(own.get("_params"))), None)
            rate = settings.get("lr")
            now.rate = ABSENT if rate is None else float(rate * own_dict(first).get("lr_mult", 1.0))
            return None
        # A schedule may count how often it is asked.
        owner = next(base for base in bases_of(type(optimizer)) if "_get_lrs" in vars(base))
        why = "learning rates of a schedule are saved as an update uses them"
        return Patch(owner, "_get_lrs", self._listen, why=why, until=Until.CALL_RETURNS).remove

    @fence("looking at an update")
    def after_update(self, trainer: Any, ends: bool) -> None:
        """A Trainer has updated its parameters; ``ends``: and with that the current training step has ended."""
        begun = perf_counter()
        if self._takes():
            scaler = own_dict(own_dict(trainer).get("_amp_loss_scaler"))
            if scaler:
                self._now.skipped = float(scaler["_next_loss_scale"] < scaler["_loss_scale"])
            if ends:
                self._write()
                took, self._took = self._took + perf_counter() - begun, 0.0
                if self._last.seconds is not ABSENT:
                    self._times.pause(self, self._last.seconds, took)

    @fence("looking at an update")
    def rested(self) -> None:
        """Steps are looked at again, after some of which there is no row."""
        self._times.go_on(self)

    @fence("writing the numbers of a step")
    def ended(self) -> None:
        """The current training step has ended."""
        # A Trainer that has been made may end one that rests.
        if updates.listener is self and self._takes():
            self._write()

    @fence("going on with a step")
    def went_on(self) -> None:
        """The step that has just ended goes on."""
        if self._takes():
            self._times.take_back(self._now.seconds)
            self._now.seconds = ABSENT

    @fence("writing the numbers of the last step")
    def settle(self) -> None:
        """Write all that is yet to be written."""
        if self._now is not _NO_STEP:
            self._write()
        self._late.settle(wait=True)

    # How it is done.

    def _listen(self, original: Function) -> Function:
        def get_lrs(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._overhear(result)
            return result

        return get_lrs

    @fence("looking at the learning rate of an update")
    def _overhear(self, rates: Any) -> None:
        if self._now.rate is ABSENT and self._now is not _NO_STEP:
            self._now.rate = float(rates[0])

    def _takes(self) -> bool:
        """True if what is told belongs to a step whose row is made."""
        current = self._recorder.interrupted or self._recorder.position
        if self._now.at.step == current.step:
            # Of trainings in several threads each step is one's.
            return self._thread == get_ident()
        if not self._recorder.series.wanted or current.step < 0:
            return False
        if self._now is not _NO_STEP:
            # It has ended without an update that was seen.
            self._write()
        self._thread = get_ident()
        self._now = self._last
        if self._last.at.step != current.step:
            self._now = _Numbers(At(current.step, current.clock.mode, current.clock.step))
        return True

    def _write(self) -> None:
        now, self._now = self._now, _NO_STEP
        now.end_part(1.0 if now.scale is ABSENT else now.scale)
        if now.seconds is ABSENT:
            now.seconds = self._times.ends()
        others: tuple[float, ...] = now.rate, now.seconds
        if now.scale is not ABSENT:
            self._names = NAMES_OF_SCALED
        if self._names is NAMES_OF_SCALED:
            others = (*others, now.scale, now.skipped)
        self._last = now
        self._late.take(_Row(now.at, self._names, (*now.parts,), others))


def _loss_of(parts: tuple[_Part, ...]) -> float:
    """The loss of a step: of what each update follows, the mean of arrays with several elements, and all others.

    Gluon's losses have an element for each row of the batch, over which a Trainer divides.
    """
    total = ABSENT
    for part in parts:
        values = [one.value for one in part.sums if one.value is not None]
        if len(values) < len(part.sums):
            return ABSENT
        of_rows = [one for one in part.sums if one.count > 1]
        alone = sum(one.value or 0.0 for one in part.sums if one.count == 1)
        mean = sum(one.value or 0.0 for one in of_rows) / sum(one.count for one in of_rows) if of_rows else 0.0
        loss = (alone + mean) / part.scale
        total = loss if total is ABSENT else total + loss
    return total
