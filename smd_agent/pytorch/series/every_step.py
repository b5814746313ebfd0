"""The numbers of each training step of a hook, gathered while it runs and written when it ends: losses, rate, time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from time import perf_counter
from typing import Any

from smd_agent.core.modes import ModeKeys
from smd_agent.core.recorder import Recorder
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.plain_access import attribute, own_dict
from smd_agent.framework.series_pauses import StepTimes
from smd_agent.framework.series_rows import At, fence
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.plain_access import groups_of
from smd_agent.pytorch.series.clip_norms import Measured, clipping
from smd_agent.pytorch.series.late_rows import LateRows, Number
from smd_agent.pytorch.series.named_parameters import GRADIENT, UPDATE
from smd_agent.pytorch.series.norms import Norms
from smd_agent.pytorch.series.roots import ScaledLosses, added, number_of, passes, scale_of
from smd_agent.pytorch.training_threads import TrainingThreads

NAMES: tuple[str, ...] = ("series/loss", GRADIENT, UPDATE, "series/learning_rate", "series/seconds")
NAMES_OF_SCALED: tuple[str, ...] = (*NAMES, "series/loss_scale", "series/skipped")


class _Numbers:
    """The numbers of one step, as far as they are known."""

    __slots__ = ("at", "loss", "rate", "scale", "seconds", "skipped")

    def __init__(self, at: At) -> None:
        self.at = at
        self.loss: Number = ABSENT
        self.rate: Number = ABSENT
        self.scale: Number = ABSENT
        self.skipped: Number = ABSENT
        # From the end of the step before; not known until it has ended.
        self.seconds = ABSENT


_NO_STEP = _Numbers(At(-2, ModeKeys.GLOBAL, -2))


class CulpritFinder:
    """A listener that is told of values that may not be finite; this one looks for nothing."""

    def pass_begins(self, at: At, roots: Any, numbers: list[Number]) -> None:
        """A backward pass is about to begin from these tensors, whose values are the numbers."""

    def of_loss(self, roots: Any) -> None:
        """A backward pass is about to begin from values that are not finite."""

    def of_gradients(self, at: At, optimizer: Any) -> None:
        """An optimizer is about to use gradients that are not finite, or so large that their norm is not."""

    def step_ended(self) -> None:
        """The current training step has ended."""

    def rests(self, now: bool) -> None:
        """Nothing is told of some steps to come, or of those to come all is told again."""

    def run_ends(self) -> None:
        """The program ends."""


class EveryStep:
    """The step that is under way.

    Its row is written when the update that ends it has come, and again, complete, if more comes before the next step
    begins. Where no update is seen to end steps, it is written once the next one has begun.

    Args:
        recorder: of the hook.
        models: gives those that are known.
        threads: tell whose steps they are.
        updating: whether an optimizer's update is under way.

    Attributes:
        culprits: told of values that are not finite.
    """

    def __init__(
        self,
        recorder: Recorder,
        models: Callable[[], Iterable[TrackedModule]],
        threads: TrainingThreads,
        updating: Callable[[], bool],
    ) -> None:
        self._recorder = recorder
        self.culprits = CulpritFinder()
        self._norms = Norms(models, recorder.series.budget)
        self._threads = threads
        self._closures = ClosurePasses(updating)
        self._late = LateRows(recorder.series)
        self._losses = ScaledLosses()
        self._names = NAMES
        self._times = StepTimes(updates, (passes, clipping), recorder.series.budget)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._now = self._last = _NO_STEP
        self._thread = 0
        self._times.begin_anew()

    # What is told.

    @fence("looking at a backward pass")
    def pass_begins(self, roots: Any) -> None:
        """A backward pass begins from these tensors."""
        if self._takes() and not (self._closures.passes >= 0 and self._closures.repeats()):
            now = self._now
            if self._norms.clipped.count:
                self._norms.clipped.clear()
            numbers = self._losses.numbers(roots)
            self.culprits.pass_begins(now.at, roots, numbers)
            for number in numbers:
                now.loss = number if now.loss is ABSENT else added(number, now.loss)
            if type(now.loss) is float and now.loss - now.loss != 0.0 and now.loss is not ABSENT:
                self.culprits.of_loss(roots)

    @fence("looking at a loss that is scaled")
    def loss_scaled(self, scaler: Any, losses: Any, scaled: Any) -> None:
        """A scaler has multiplied losses."""
        if self._takes():
            self._losses.note(scaler, losses, scaled)

    @fence("looking at an update")
    def before_update(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer is about to update its parameters."""
        if len(args) > 1 or kwargs:
            self._closures.passes = 0 if any(map(callable, (*args[1:], *kwargs.values()))) else -1
        if self._closures.passes >= 0:
            # The step may begin in the closure.
            if self._recorder.series.wanted and not self._threads.trains_beside():
                self._norms.before_update(optimizer)
        elif self._takes():
            norms = self._norms
            norms.before_update(optimizer)
            norms.uses_gradients(optimizer)
            if norms.broken.are_used(optimizer, norms.gradients.total):
                self.culprits.of_gradients(self._now.at, optimizer)

    @fence("looking at an update")
    def after_update(self, optimizer: Any, ends: bool) -> None:
        """An optimizer has updated its parameters; ``ends``: and with that the current training step has ended."""
        begun = perf_counter()
        has_closure, self._closures.passes = self._closures.passes >= 0, -1
        if ends:
            self.culprits.step_ended()
        if self._takes():
            if has_closure:
                self._norms.uses_gradients(optimizer)
            if self._norms.updates.now:
                self._norms.after_update(optimizer)
            now = self._now
            if now.rate is ABSENT:
                now.rate = _rate_of(optimizer)
            if now.scale is not ABSENT:
                found = attribute(optimizer, "found_inf")
                now.skipped = 0.0 if found is None else number_of(found)
            # The time of norms is limited by itself.
            measures = self._norms.gradients.now or self._norms.updates.now
            if ends:
                self._write()
            if ends and not measures and self._last.seconds is not ABSENT:
                self._times.pause(self, self._last.seconds, perf_counter() - begun)
                if updates.listener is not self:
                    self.culprits.rests(True)

    @fence("looking at an update")
    def rested(self) -> None:
        """Steps are looked at again, after some that have no row."""
        self._times.go_on(self)
        self.culprits.rests(False)

    @fence("keeping norms that the program computes")
    def wants_norms(self) -> bool | None:
        """True if the norm of each gradient is wanted that the program measures, and not only that of all of them."""
        return self._takes() and self._norms.gradients.now

    @fence("keeping norms that the program computes")
    def gradients_measured(self, count: int, each: list[Measured], total: Any) -> None:
        """The program has measured so many gradients; ``each``: the norm of each one, as far as that is wanted."""
        if self._takes():
            self._norms.clipped.add(count, each, total)

    @fence("looking at a scaler")
    def scaler_steps(self, scaler: Any) -> None:
        """A scaler is about to have an optimizer update its parameters, or to skip that."""
        if self._takes():
            self._now.scale = scale_of(scaler)

    @fence("looking at an update that is skipped")
    def update_skipped(self, optimizer: Any) -> None:
        """A scaler has skipped an update."""
        if self._takes() and self._now.scale is not ABSENT:
            self._now.skipped = 1.0
            if self._now.rate is ABSENT:
                self._now.rate = _rate_of(optimizer)

    @fence("writing the numbers of a step")
    def ended(self) -> None:
        """The current training step has ended."""
        self.culprits.step_ended()
        # In a pause nothing is known of it but its end.
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

    def drop(self) -> None:
        """Forget everything."""
        self._late.drop()
        self._losses.clear()
        self._begin_anew()

    # How it is done.

    def _takes(self) -> bool:
        """True if what is told belongs to a step whose row is written."""
        if self._now.at.step == self._recorder.position.step and self._thread == get_ident():
            return True
        if not self._recorder.series.wanted or self._threads.trains_beside():
            return False
        current = self._recorder.interrupted or self._recorder.position
        if self._now is not _NO_STEP and self._now.at.step != current.step:
            # It has ended without an update that was seen.
            self._write()
        if self._now is _NO_STEP:
            self._thread = get_ident()
            self._now = self._last
            if self._last.at.step != current.step:
                self._now = _Numbers(At.current(current))
            else:
                self._norms.go_on()
        return True

    def _write(self) -> None:
        now, self._now = self._now, _NO_STEP
        if now.seconds is ABSENT:
            now.seconds = self._times.ends()
        norms = self._norms
        numbers: tuple[Number, ...] = now.loss, norms.gradients.total, norms.updates.total, now.rate, now.seconds
        if now.scale is not ABSENT:
            self._names = NAMES_OF_SCALED
        if self._names is NAMES_OF_SCALED:
            numbers = (*numbers, now.scale, now.skipped)
        self._last = now
        self._losses.clear()
        self._late.take(STEPS_TABLE, now.at, self._names, numbers)
        norms.end_step(now.at, self._late, now.seconds)


class ClosurePasses:
    """The passes that an optimizer's closure makes.

    Args:
        updating: whether an optimizer's update is under way.

    Attributes:
        passes: how many there were in the update that is under way; -1 if none has a closure.
    """

    def __init__(self, updating: Callable[[], bool]) -> None:
        self._updating = updating
        self.passes = -1

    def repeats(self) -> bool:
        """True if the closure is called again, as to search along a line: its first loss is the step's."""
        if self.passes and not self._updating():
            # An update has ended with an exception.
            self.passes = -1
            return False
        self.passes += 1
        return self.passes > 1


def _rate_of(optimizer: Any) -> Number:
    """The learning rate of an optimizer's first group."""
    groups = own_dict(optimizer).get("param_groups")
    if type(groups) is not list or not groups or type(groups[0]) is not dict:
        groups = groups_of(optimizer)
    return number_of(groups[0].get("lr")) if groups else ABSENT
