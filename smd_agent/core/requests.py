"""Requests to a running training: what somebody asks for from outside, and what its steps do about that.

A thread of the agent's hands requests over; the training's own thread takes them when a step begins. It looks for them
only in steps that are due, and a request makes the next one due: as long as there is none, nothing is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

from smd_agent import guard
from smd_agent.core.clock import NEVER, ModeClock, RunPosition
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.extra_steps import WHOLE, Span
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugValueError
from smd_agent.printable import count_of, shortened

if TYPE_CHECKING:
    from smd_agent.core.selection import Selection

SAVE, DUMP, KEEP, STOP, SET = "save", "dump", "keep", "stop", "set"
ACTIONS = (SAVE, DUMP, KEEP, STOP, SET)
INTERVAL = "save_interval"
_MODES = {mode.name.lower(): mode for mode in ModeKeys if mode is not ModeKeys.GLOBAL}
KEYS = (INTERVAL, *(f"{name}.{INTERVAL}" for name in _MODES))
"""What may be set while a training goes on."""


STOPPED_EXIT_CODE = 86
"""Exit code of a program whose training was asked to end."""


class TrainingStopped(SystemExit):
    """The end of a training loop that somebody asked for; no ``except Exception`` sees it, and ``finally`` runs.

    Attributes:
        step: the training step whose update does not take place any more.
        why: it was asked for, in words.
    """

    def __init__(self, step: int, why: str) -> None:
        super().__init__(STOPPED_EXIT_CODE)
        self.step = step
        self.why = why

    def __reduce__(self) -> tuple[type[TrainingStopped], tuple[int, str]]:
        return type(self), (self.step, self.why)


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        name: tells it from others.
        action: one of ``ACTIONS``.
        at: training step at which it is obeyed.
        fixed: all workers obey it at that very step; else at the first one from it on.
        collections: to save.
        steps: how many steps save them.
        why: the training is to stop, in words.
        asked_by: who asks, in words.
        key, value: what is set, and to what.
    """

    name: str
    action: str
    at: int = 0
    fixed: bool = False
    collections: tuple[str, ...] = ()
    steps: int = 1
    why: str = ""
    asked_by: str = "tap"
    key: str = ""
    value: int = 0


class Answer(NamedTuple):
    """The answer of one worker to the request of this name.

    obeyed: else it was refused.
    text: what was done or why nothing, in one sentence.
    step: training step at which it was obeyed; -1 if it was not.
    saved: number of different tensors that were saved.
    """

    name: str
    obeyed: bool
    text: str
    step: int = -1
    saved: int = 0


class Stopper(Protocol):
    """Ends a framework's training."""

    def after_step(self) -> str:
        """Have whoever runs the loop end it when the current step is over; who that is, or "" if nobody does."""

    def is_ignored(self) -> bool:
        """True if whoever was to end the loop goes on all the same."""

    def before_update(self, end: Callable[[], object]) -> bool:
        """Have ``end``, which raises, called before the current step updates parameters; False: it cannot be."""


class AtOnce:
    """Ends a training of which nothing more is known: where a step begins."""

    def after_step(self) -> str:
        """Nobody ends it."""
        return ""

    def is_ignored(self) -> bool:
        """Nobody was asked."""
        return False

    def before_update(self, end: Callable[[], object]) -> bool:
        """No update is seen."""
        return False


class Keeper(Protocol):
    """Keeps what a step is given, by which it can be made again."""

    def keep(self, done: Callable[[str, int], object]) -> str:
        """Have what the step is given that begins kept.

        Args:
            done: called once with what has come of it, in words, and the training step; -1 if it is not kept.

        Returns:
            Why it cannot be, in words; "" if it can.
        """


class NoKeeper:
    """Keeps nothing."""

    def keep(self, done: Callable[[str, int], object]) -> str:
        """Nothing can be kept."""
        return "with this framework no step can be kept"


class Requests:
    """The requests of one run.

    Args:
        position: where the run stands.
        clocks: of its modes.
        selection: what it saves.

    Attributes:
        answer: called with each answer.
        stopper: ends the training.
        keeper: keeps what a step is given.
        unread: a request has come since the last step that was looked at.
    """

    def __init__(self, position: RunPosition, clocks: Iterable[ModeClock], selection: Selection) -> None:
        self._position = position
        self._clocks = [*clocks]
        self._selection = selection
        self.answer: Callable[[Answer], object] = lambda _: None
        self.stopper: Stopper = AtOnce()
        self.keeper: Keeper = NoKeeper()
        self.unread = False
        self._waiting: deque[Request] = deque()
        self._saves: dict[str, Span] = {}
        # Requests of which the keeper is to tell what has come, and their steps.
        self._keeps: dict[str, int] = {}
        # Called with the first step that begins though the training was to end before.
        self._end: Callable[[int], object] | None = None

    # What the thread that listens calls.

    @property
    def step(self) -> int:
        """The training step that the run is in; -1 before the first."""
        return self._position.train.step

    def take(self, request: Request) -> None:
        """Have a request obeyed."""
        # In this order: who decides about a step writes down when the next one is due, and looks then for unread ones.
        self._waiting.append(request)
        self.unread = True
        for clock in self._clocks:
            clock.due = 0

    # What the training's own thread calls.

    def step_begins(self, clock: ModeClock) -> None:
        """Obey what is asked for at the step that has begun.

        Raises:
            TrainingStopped: it is asked to stop, and nothing else ends it.
        """
        self.unread = False
        if not (self._waiting or self._saves or self._keeps or self._end) or not self._counts_training(clock):
            return
        if self._end is not None:
            end, self._end = self._end, None
            end(clock.step)
        for name, span in [*self._saves.items()]:
            if span.mode is not clock.mode or clock.step > span.last:
                self._saved(name, span, span.last)
        for name, step in [*self._keeps.items()]:
            if clock.step > step:
                self._kept(name, f"no backward pass of a model was seen in step {step}")
        for request in [*self._waiting]:
            if request.action == STOP:
                self._stop(request, clock.step)
            elif clock.step >= request.at:
                self._waiting.remove(request)
                self._obey(request, clock)

    def next_due(self, clock: ModeClock) -> int:
        """The first step of a clock, after its current one, at which something is to be looked at."""
        if not self._counts_training(clock):
            return NEVER
        # Whoever runs the loop is asked one step before.
        first = (max(one.at - (one.action == STOP), clock.step + 1) for one in self._waiting)
        unseen = clock.step + 1 if self._end is not None or self._keeps else NEVER
        return min(self._selection.manager.extra.next_due(clock.mode, clock.step + 1), unseen, *first)

    def end(self, why: str = "the training has ended") -> None:
        """Answer what is left: no step begins any more."""
        for name, span in [*self._saves.items()]:
            self._saved(name, span, self._position.train.step, why)
        for name in [*self._keeps]:
            self._kept(name, why)
        while self._waiting:
            request = self._waiting.popleft()
            self._refuse(request, f"{why} before step {request.at}" if request.at > self.step else why)

    def drop(self) -> None:
        """Forget all, without an answer."""
        self._waiting.clear()
        self._saves.clear()
        self._keeps.clear()
        self._selection.manager.extra.spans.clear()
        self._end = None

    # How it is done.

    def _counts_training(self, clock: ModeClock) -> bool:
        return clock.mode is ModeKeys.TRAIN or clock is self._position.train

    def _refuse(self, request: Request, why: str) -> None:
        self.answer(Answer(request.name, False, why))

    def _obey(self, request: Request, clock: ModeClock) -> None:
        if request.fixed and clock.step > request.at and request.action != SET:
            late = f"it was read in step {clock.step}, which is too late for step {request.at}: ask again"
            self._refuse(request, late)
        elif request.action == SET:
            self._set(request, clock.step)
        elif request.action == KEEP:
            self._keep(request.name, clock.step)
        else:
            self._save(request, clock)

    def _save(self, request: Request, clock: ModeClock) -> None:
        known = self._selection.manager.get_collections()
        # Some frameworks have the outputs of layers, and no other ones.
        other = CollectionKeys.LAYERS if CollectionKeys.OUTPUTS not in known else CollectionKeys.OUTPUTS
        asked = {other if name == CollectionKeys.OUTPUTS and other in known else name for name in request.collections}
        names = asked if request.action == SAVE else {*known, WHOLE}
        unknown = sorted(names - known.keys() - {WHOLE})
        if unknown:
            shown = shortened(", ".join(unknown))
            self._refuse(request, f"there is no collection {shown}; there are {', '.join(sorted(known))}")
            return
        span = Span(clock.mode, clock.step, clock.step + request.steps - 1, frozenset(names))
        self._saves[request.name] = span
        self._selection.manager.extra.spans.append(span)
        self._selection.changed()

    def _saved(self, name: str, span: Span, last: int, why: str = "") -> None:
        """Answer that a span is over, with this step; ``why`` it is over too early."""
        del self._saves[name]
        selection = self._selection
        saved = selection.plan().seen_of(span.names)
        selection.manager.extra.spans.remove(span)
        selection.changed()
        steps = count_of(last - span.first + 1, "step")
        cut = f": {why}" if why and last < span.last else ""
        if saved:
            text = f"obeyed at step {span.first}, saved {count_of(saved, 'tensor')} in {steps}{cut}"
            self.answer(Answer(name, True, text, span.first, saved))
            return
        reasons = selection.manager.cannot_save
        known = next((reasons[one] for one in sorted(span.names) if one in reasons), "") if len(span.names) == 1 else ""
        asked = ", ".join(sorted(span.names - {WHOLE}))
        reason = f": {known}" if known else cut
        self.answer(Answer(name, False, f"no tensor of {asked} came up in {steps} from {span.first} on{reason}"))

    def _keep(self, name: str, step: int) -> None:
        self._keeps[name] = step
        why = self.keeper.keep(lambda text, kept: self._kept(name, text, kept))
        if why:
            self._kept(name, why)

    def _kept(self, name: str, text: str, step: int = -1) -> None:
        """Answer what has become of a step that was to be kept; -1: it is not."""
        if self._keeps.pop(name, None) is not None:
            self.answer(Answer(name, step >= 0, text, step))

    def _set(self, request: Request, step: int) -> None:
        manager = self._selection.manager
        prefix = request.key.rpartition(".")[0]
        modes = [_MODES[prefix]] if prefix else [*ModeKeys]
        configs = (manager.default_save_config, *(one.save_config for one in manager.get_collections().values()))
        before = set()
        for config in configs:
            for mode in modes if config is not None else ():
                rule = config.get_save_config(mode)  # type: ignore[union-attr]
                before.add(rule.save_interval)
                rule.save_interval = request.value
        self._selection.changed()
        was = ", ".join(map(str, sorted(before)))
        text = f"obeyed at step {step}, {request.key} is {request.value} (it was {was})"
        self.answer(Answer(request.name, True, text, step))

    def _stop(self, request: Request, step: int) -> None:
        if step + 1 < request.at:
            return
        said = f"{request.why} (asked by {request.asked_by})"

        def end(at: int) -> NoReturn:
            guard.say(f"stopped at step {at}: {said}")
            raise TrainingStopped(at, request.why)

        who = self.stopper.after_step()
        if who:
            self._waiting.remove(request)
            guard.say(f"stopped after step {step}: {said}")
            self.answer(Answer(request.name, True, f"obeyed: {who} ends the training after step {step}", step))
            self._end = lambda at: self.stopper.is_ignored() and end(at)
        elif step >= request.at:
            self._waiting.remove(request)
            late = f", late: it was to be step {request.at}" if request.fixed and step > request.at else ""
            self.answer(Answer(request.name, True, f"obeyed at step {step}, before its update{late}", step))
            # Where no update is seen.
            self._end = end
            if not self.stopper.before_update(lambda: end(step)):
                end(step)


def checked(request: Request) -> Request:
    """The same request, if it makes sense.

    Raises:
        SMDebugValueError: it does not; one sentence says why.
    """
    if request.action not in ACTIONS:
        raise _unfit("action", request.action, ", ".join(ACTIONS))
    if request.action == SAVE and not request.collections:
        raise SMDebugValueError("collections are missing")
    if request.action == SET and request.key not in KEYS:
        raise _unfit("key", request.key, ", ".join(KEYS))
    least_value = int(request.action == SET)
    numbers = (("steps", request.steps, 1), ("at", request.at, 0), ("value", request.value, least_value))
    for what, value, least in numbers:
        if value < least or value >= NEVER:
            raise _unfit(what, value, f"a whole number from {least} up")
    return replace(request, steps=1) if request.action == DUMP else request


def _unfit(what: str, found: object, allowed: str) -> SMDebugValueError:
    return SMDebugValueError(f"{what} is {shortened(repr(found), 60)}, allowed is {allowed}")
