"""Failure domains: the parts of what is saved, of which each fails alone.

Every function of the agent's that may fail in the program's way belongs to a domain. A failure costs what the function
would have done: in that step something of the domain may be missing, all else goes on. One line says so, and the
failure is noted in the run. A domain that fails in ``IN_A_ROW`` saved steps after one another, or ``AT_MOST`` times, is
switched off. ``STEPS`` is the domain of what no other one stands for: with it the capture ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from smd_agent import guard
from smd_agent.core.failure_record import Failure
from smd_agent.core.overhead import overhead

P = ParamSpec("P")
R = TypeVar("R")
IN_A_ROW = 3
AT_MOST = 100
# Different failures that are noted.
_NOTED = 100


class Failures:
    """The failures of a process, and its domains.

    Attributes:
        domains: all that there are, as they are declared.
        noted: those that there were, the first one first.
        saved_steps: how many steps have been opened to be saved.
        where: gives number and mode of the current step.
        changed: called when there is a new failure, or a domain was switched off.
    """

    def __init__(self) -> None:
        self.domains: list[Domain] = []
        self.noted: list[Failure] = []
        self.saved_steps = 0
        self.where: Callable[[], tuple[int, str]] = lambda: (-1, "")
        self.changed: Callable[[], object] = bool

    def begin_anew(self) -> None:
        """Forget all of them."""
        self.noted.clear()
        for domain in self.domains:
            domain.begin_anew()

    def note(self, domain: str, doing: str, error: Exception) -> Failure:
        """Take note of a failure."""
        step, mode = self.where()
        found = next((one for one in self.noted if (one.domain, one.doing) == (domain, doing)), None)
        if found is None:
            found = Failure(domain, doing, guard.describe(error), step, step, mode)
            if len(self.noted) < _NOTED:
                self.noted.append(found)
        else:
            found.error, found.last, found.times = guard.describe(error), step, found.times + 1
        return found


failures = Failures()
"""Those of this process."""


class Domain:
    """A part of what is saved, which fails alone.

    Args:
        name: in words, in the plural, such as ``losses``.

    Attributes:
        name: the same.
        off: whether it is saved no more.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.begin_anew()
        failures.domains.append(self)

    def begin_anew(self) -> None:
        """Forget what has failed."""
        self.off = False
        self._in_a_row = self._times = 0
        # When it failed last, as the number of saved steps.
        self._failed_at = -IN_A_ROW

    def fence(
        self, doing: str, then: Callable[..., object] | None = None, again: bool = False
    ) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
        """Make a function of ours safe to call from the program's code, and count its time as ours.

        Args:
            doing: what the function does, in words.
            then: called with its arguments after it has failed.
            again: whether it is called again, once, where it fails: it tells where a step begins or ends.

        Returns:
            What makes a function that returns None where this one fails, and once the domain is switched off.
        """

        def build(function: Callable[P, R]) -> Callable[P, R | None]:
            return guard.fenced(overhead.counted(function), self, doing, then, again)

        return build

    def run(self, doing: str, action: Callable[[], R]) -> R | None:
        """Call a function of ours; None where it fails, and once the domain is switched off."""
        return None if self.off else self.always(doing, action)

    def always(self, doing: str, action: Callable[[], R], again: bool = False) -> R | None:
        """The same, also once the domain is switched off: for what is undone. ``again`` is as above."""
        found: list[R] = []
        error = guard.attempt(lambda: found.append(action()))
        if error is None:
            return found[0]
        if again and not guard.strict:
            guard.attempt(lambda: found.append(action()))
        self.failed(doing, error)
        if guard.strict:
            raise error
        return found[0] if found else None

    def failed(self, doing: str, error: Exception) -> None:
        """Say what a failure costs, note it, and switch the domain off where it fails again and again."""
        self._times += 1
        if self._failed_at != failures.saved_steps:
            self._in_a_row = self._in_a_row + 1 if self._failed_at == failures.saved_steps - 1 else 1
            self._failed_at = failures.saved_steps
        noted = failures.note(self.name, doing, error)
        why = f"{doing} failed ({guard.describe(error)})"
        if self.off:
            return
        if self._in_a_row >= IN_A_ROW or self._times >= AT_MOST:
            self.off = noted.off = True
            guard.say_once(("off", self.name), self._lost_for_good(why))
            guard.attempt(self.switched_off)
        else:
            guard.say_once((self.name, doing), f"{self._lost(noted.last)}: {why}; all else goes on")
        if noted.times == 1 or noted.off:
            guard.attempt(failures.changed)

    def _lost(self, step: int) -> str:
        return f"{self.name} of {_step(step)} may be missing"

    def _lost_for_good(self, why: str) -> str:
        return f"{self.name} are not saved any more: {why} again and again; all else goes on"

    def switched_off(self) -> None:
        """The domain has been switched off."""


class _Steps(Domain):
    """The domain of all that no other one stands for.

    Attributes:
        end: ends the capture.
    """

    def __init__(self) -> None:
        super().__init__("steps")
        self.end: Callable[[], object] = bool

    def failed(self, doing: str, error: Exception) -> None:
        """The same; a folder that cannot be made, as on a disk that is read-only, ends the capture at once."""
        # Nothing else asks the system for something while a step is opened.
        if isinstance(error, OSError) and doing == "opening a step":
            self._times = AT_MOST
        super().failed(doing, error)

    def _lost(self, step: int) -> str:
        return f"{_step(step)} may be incomplete"

    def _lost_for_good(self, why: str) -> str:
        again = " again and again" if self._in_a_row >= IN_A_ROW else ""
        return f"{why}{again}; capture is off for the rest of this run"

    def switched_off(self) -> None:
        """Capture nothing more."""
        self.end()


def _step(number: int) -> str:
    return f"step {number}" if number >= 0 else "the first step"


def tensor_failed(name: str, error: Exception) -> None:
    """Say that a tensor is missing in the current step, and note it; in the next one it is tried again.

    Of tensors that are missing for one reason, a line names the first, and the run's notes name all.

    Raises:
        Exception: the error, under ``guard.strict``.
    """
    noted = note_missing(name, error)
    why = f"saving it failed ({guard.describe(error)})"
    guard.say_once(("tensor", why), f"{name} is missing in step {noted.step}: {why}; all else goes on")
    if guard.strict:
        raise error


def note_missing(name: str, error: Exception) -> Failure:
    """Note in the run that a tensor or a collection is missing in the current step; who calls says so in a line."""
    noted = failures.note(name, "saving it", error)
    if noted.times == 1:
        guard.attempt(failures.changed)
    return noted


STEPS = _Steps()
WEIGHTS = Domain("weights")
GRADIENTS = Domain("gradients")
LOSSES = Domain("losses")
LAYERS = Domain("inputs and outputs of layers")
METRICS = Domain("metrics")
UPDATES = Domain("updates")
SETTINGS = Domain("optimizer settings")
DIGESTS = Domain("input digests")
PARAMETERS = Domain("facts of parameters")
INPUTS = Domain("inputs' scales")
LOSS_FACTS = Domain("facts of losses")
GRADIENT_FACTS = Domain("facts of gradients")
MODES = Domain("modes of layers")
CHANNELS = Domain("shares of channels")
BOARD = Domain("files for TensorBoard")
JOB_METRICS = Domain("metrics of the job")
GIVEN = Domain("values of the program")
ENVIRONMENT = Domain("facts of the environment")
RESTARTS = Domain("notes of checkpoints")
SERIES = Domain("rows of the series")
CULPRITS = Domain("culprits of values that are not finite")
BUNDLES = Domain("bundles of steps that went wrong")
REQUESTS = Domain("answers to requests")
WATCHING = Domain("rules while training")
