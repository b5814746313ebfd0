"""The numbers of each training step of Keras, saved or not: loss, learning rate, time, and the scale of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smd_agent.core.recorder import Recorder
from smd_agent.formats.series import ABSENT, STEPS_TABLE
from smd_agent.framework.keras.optimizers import LOSS_SCALE, SKIPPED, inner_of, kept_rate, loss_scale_of, skipped
from smd_agent.framework.keras.plain_access import own_attributes
from smd_agent.framework.keras.scalar_variables import ScalarVariables
from smd_agent.framework.keras.tracked_loss import Losses
from smd_agent.framework.keras.types import Model
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_pauses import StepsAtRest
from smd_agent.framework.series_rows import LEARNING_RATE, ONE_BY_ONE, StepTime, fence, series_name
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.framework.wrong_steps import WrongSteps

if TYPE_CHECKING:
    from smd_agent.framework.keras.backend import RunningStep

OF_EXECUTIONS = (series_name("execution_loss"), series_name("execution_seconds"))
SCALED = (series_name(LOSS_SCALE), series_name(SKIPPED))


class EveryStep:
    """The rows of a run: of each training step, and of fewer where steps are so short that rows would show.

    Args:
        recorder: of the hook.
        variables: of the library that Keras computes with.
        wrong: are told of losses; None where nobody wants to know.
    """

    def __init__(self, recorder: Recorder, variables: ScalarVariables, wrong: WrongSteps | None = None) -> None:
        self._recorder = recorder
        self._wrong = wrong
        self._variables = variables
        self._time = StepTime()
        self._rests = StepsAtRest(recorder.series.budget)
        self._models: WeakIdentityMap[RunningStep[Any], _ModelNumbers] = WeakIdentityMap()
        self._now: _ModelNumbers | None = None
        # The model whose step has ended last, and the number of that step.
        self._last: _ModelNumbers | None = None
        self._newest = -1

    @fence("looking at a step that begins")
    def begins(self, step: RunningStep[Any], steps: int) -> bool:
        """A model begins so many steps in one call; True if their end is to be told."""
        if self._rests.left > 1:
            self._rests.passes()
            return False
        if self._rests.left:
            return True
        if not self._recorder.series.wanted or not self._variables.can_be_read():
            return False
        now = self._models.get(step)
        if now is None:
            now = self._models.set(step, _ModelNumbers(step.model, self._variables))
        follows = now is self._last and self._recorder.position.newest == self._newest + steps
        now.begin(step.model, steps, follows)
        self._now, self._last = now, None
        return True

    @fence("writing the numbers of a step")
    def ended(self) -> None:
        """The steps that have begun last have ended, with the current one."""
        seconds = self._time.ends()
        if self._rests.left:
            self._rests.passes()
            return
        now, self._now = self._now, None
        if now is not None:
            names, numbers = now.end(seconds)
            self._recorder.series.add(STEPS_TABLE, names, numbers)
            # Where the scale of a loss overflows, the update is left out, and the next scale is smaller.
            if self._wrong is not None and self._wrong.wanted and not _is_skipped(names, numbers):
                self._wrong.saw(self._recorder.position, _loss_among(names, numbers))
            self._last, self._newest = now, self._recorder.position.newest
            self._rests.begin()


def _loss_among(names: tuple[str, ...], numbers: Sequence[float]) -> float:
    """The loss of a step, or of all steps of an execution, of which the current one is the last."""
    # The first of the names is always that of the loss.
    if numbers[0] is ABSENT and OF_EXECUTIONS[0] in names:
        return numbers[names.index(OF_EXECUTIONS[0])]
    return numbers[0]


def _is_skipped(names: tuple[str, ...], numbers: Sequence[float]) -> bool:
    return SCALED[1] in names and numbers[names.index(SCALED[1])] == 1.0


class _ModelNumbers:
    """The numbers of the steps of one model's function.

    Args:
        model: whose steps they are.
        variables: of the library that Keras computes with.
    """

    def __init__(self, model: Model, variables: ScalarVariables) -> None:
        self._variables = variables
        self._losses = Losses(model, variables)
        self._names: tuple[str, ...] = ONE_BY_ONE
        self._steps = 1
        self._optimizer: Any = None
        # The one inside of an optimizer that multiplies losses, or else the same.
        self._inner: Any = None
        self._scale: float | None = None
        self._rate: Any = None
        self._looked_at: tuple[Any, ...] = ()
        self._read = variables.reader(())

    def begin(self, model: Model, steps: int, follows: bool) -> None:
        """A call for so many steps begins; ``follows``: nothing was counted since the last one has ended."""
        self._steps = steps
        self._losses.begin(follows)
        optimizer = own_attributes(model).get("optimizer")
        if optimizer is not self._optimizer:
            inner = inner_of(optimizer)
            self._optimizer, self._inner = optimizer, optimizer if inner is None else inner
        self._scale = None if self._inner is optimizer else loss_scale_of(optimizer)

    def end(self, seconds: float) -> tuple[tuple[str, ...], Sequence[float]]:
        """The call ends, which has taken so long; names and values of its row."""
        loss, rate = self._look()
        if self._steps == 1 and self._names is ONE_BY_ONE and self._scale is None:
            return ONE_BY_ONE, (loss, rate, seconds)
        found = {LEARNING_RATE: rate}
        # Of each of several steps nobody knows them.
        of_steps = ONE_BY_ONE if self._steps == 1 else OF_EXECUTIONS
        found[of_steps[0]], found[of_steps[-1]] = loss, seconds
        if self._scale is not None:
            skips = skipped(self._optimizer, self._scale).get(SKIPPED, ABSENT)
            found.update(zip(SCALED, (self._scale, skips), strict=True))
        # Whatever steps come later, their rows keep the names: others begin another file.
        self._names = (*self._names, *(name for name in found if name not in self._names))
        return self._names, [found.get(name, ABSENT) for name in self._names]

    def _look(self) -> tuple[float, float]:
        """The loss of the step, and the learning rate of its update; ``ABSENT`` where they are not known."""
        rate, losses = kept_rate(self._inner), self._losses.variables
        if rate is not self._rate or losses is not self._looked_at:
            self._rate, self._looked_at = rate, losses
            variable = self._variables.plain(rate)
            self._read = self._variables.reader(losses if variable is None else (*losses, variable))
        values = self._read()
        loss = self._losses.end(values)
        if len(values) > len(losses):
            return loss, values[-1]
        return loss, rate if is_a(rate, float) else ABSENT
