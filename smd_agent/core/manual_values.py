"""Values that a program gives by hand: each goes into the step of the loop's pass in which it was given.

While a step is open, that is the current one. Between the end of a step and the beginning of the next, the same place
of the program is the bottom of the loop or its top. What tells them apart is the first value of a name: one that is
given before the first step stands at the top of the loop, so its later values wait for the next step as well. All
other names go into the step that has just ended. A value that waits when the run ends goes into the last step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.ports import StepSink
from smd_agent.core.value_writing import Captured, ToArray, capture, write_raw

if TYPE_CHECKING:
    from smd_agent.core.open_step import OpenStep


class _Given(NamedTuple):
    """A value that is kept; ``is_number`` for one that is saved whatever its step saves otherwise."""

    array: npt.NDArray[Any]
    original_dtype: str | None
    is_number: bool
    timestamp: float | None
    newest: int

    def write(self, sink: StepSink, name: str) -> None:
        if self.is_number:
            sink.add(name, self.array, wall_time=self.timestamp)
        else:
            write_raw(sink, name, (self.array, self.original_dtype))


class ManualValues:
    """The values of one recorder that were given by hand.

    Args:
        steps: where they go.
        to_array: see ``BaseHook.to_array``.
    """

    def __init__(self, steps: OpenStep, to_array: ToArray) -> None:
        self._steps = steps
        self._to_array = to_array
        self._names: set[str] = set()
        # Of these the first value came before the first step.
        self._ahead: set[str] = set()
        # The step into which each of these was written last.
        self._written: dict[str, int] = {}
        self._waiting: dict[str, _Given] = {}
        # Those written when the current step was opened, which may turn out to be none.
        self._taken: dict[str, _Given] = {}
        # Values from before the first step that it does not save.
        self._missed: list[str] = []
        # First values of their names that the step does not save, which may be the last one.
        self._only: dict[str, _Given] = {}

    @property
    def waiting(self) -> bool:
        """True if a value waits for the next step."""
        return bool(self._waiting)

    def save_tensor(self, name: str, value: Any) -> None:
        """Save a tensor as it is, if its step saves one of its collections; it may wait for that step."""
        steps = self._steps
        is_first = name not in self._names
        if self._is_ahead(name):
            if self._nothing_begun() or self._next_step_wants(name):
                self._wait(name, self._captured(name, value))
            else:
                self._waiting.pop(name, None)
        elif steps.takes(name):
            found = self._capture(name, value)
            sink = None if found is None else steps.sink_of_step()
            if found is not None and sink is not None:
                write_raw(sink, name, found)
                self._written[name] = steps.position.step
        elif is_first and not steps.position.awaits_update:
            self._keep_only(name, self._captured(name, value))
        else:
            self._only.pop(name, None)

    def save_number(self, name: str, array: npt.NDArray[Any], timestamp: float | None) -> None:
        """Save an array of shape (1,), whatever its step saves otherwise; it may wait for that step."""
        given = _Given(array, None, True, timestamp, self._steps.position.newest)
        if not self._is_ahead(name):
            self._write_now(name, given)
            return
        before = self._waiting.get(name)
        if before is not None and before.newest < given.newest and self._written.get(name, -1) <= before.newest:
            # The step that it waited for was not opened.
            self._write_now(name, before)
        self._wait(name, given)

    def step_opened(self) -> None:
        """The current step has been opened, and it is known what it saves: write what has waited for it.

        An evaluation may stand between the top of the loop and the training step, so what it gets waits on.
        """
        steps, position = self._steps, self._steps.position
        between = position.clock is position.evaluation and position.clock is not position.train
        for name, given in list(self._waiting.items()):
            if position.saving if given.is_number and between else given.is_number or steps.takes(name):
                self._write_now(name, given)
            elif given.newest <= position.before and not between:
                self._missed.append(name)
        if not between:
            self._taken, self._waiting = self._waiting, {}

    def step_dropped(self) -> None:
        """The step that was opened last was none: what has waited for it waits on."""
        self._waiting = {**self._taken, **self._waiting}
        self._taken = {}

    def finish(self) -> None:
        """The run ends: write what waits into the last step."""
        step = self._steps.position.step
        waiting, self._waiting = self._waiting, {}
        only, self._only = self._only, {}
        for name, given in [*waiting.items(), *only.items()]:
            written = self._written.get(name)
            if written is not None and (written == step or written > given.newest):
                if given.newest >= written:
                    line = f"{name} was given again after the last step, which keeps the value it had"
                    guard.say_once(("given after", name), line)
            elif given.is_number or self._goes_last(name, given, written):
                self._write_now(name, given)
        missed, self._missed = [name for name in self._missed if name not in self._written], []
        if missed:
            line = f"given before the first step, which does not save it: {', '.join(missed)}"
            guard.say_once(("given before", *missed), line)

    def drop(self) -> None:
        """Forget the values that wait."""
        self._waiting, self._taken, self._only = {}, {}, {}

    def _goes_last(self, name: str, given: _Given, written: int | None) -> bool:
        # A name that no step has yet would be lost; any other one keeps to the steps that save it.
        if self._steps.takes(name):
            return True
        is_of_last = given.newest == self._steps.position.newest
        return is_of_last and written is None and bool(self._steps.ever_wanted(frozenset((name,))))

    def _is_ahead(self, name: str) -> bool:
        """True if a value of this name that is given now belongs to the next step."""
        if name not in self._names:
            self._names.add(name)
            if self._nothing_begun():
                self._ahead.add(name)
        return name in self._ahead and (self._nothing_begun() or self._has_ended())

    def _nothing_begun(self) -> bool:
        position = self._steps.position
        return position.step <= position.before or (position.train is position.evaluation and position.train.step < 0)

    def _has_ended(self) -> bool:
        """True if the current step has got all that belongs to it but for what is given at the bottom of the loop."""
        position = self._steps.position
        return position.updated or (self._steps.ends_with_updates and not position.awaits_update)

    def _next_step_wants(self, name: str) -> bool:
        position = self._steps.position
        if self._steps.next_step_wants(position.train)(name):
            return True
        return position.clock is position.evaluation and self._steps.next_step_wants(position.clock)(name)

    def _capture(self, name: str, value: Any) -> Captured | None:
        # It may be of any kind, and convert itself.
        found: list[Captured | None] = []
        error = guard.attempt(lambda: found.append(capture(self._to_array, name, value)))
        if error is not None:
            guard.say_once(("no array", name), f"{name} cannot be saved: {guard.describe(error)}")
        return found[0] if found else None

    def _captured(self, name: str, value: Any) -> _Given | None:
        found = self._capture(name, value)
        return None if found is None else _Given(found[0].copy(), found[1], False, None, self._steps.position.newest)

    def _wait(self, name: str, given: _Given | None) -> None:
        if given is not None:
            self._waiting[name] = given
            self._steps.ask_again()

    def _keep_only(self, name: str, given: _Given | None) -> None:
        if given is not None:
            self._only = {other: kept for other, kept in self._only.items() if kept.newest == given.newest}
            self._only[name] = given

    def _write_now(self, name: str, given: _Given) -> None:
        sink = self._steps.sink_of_step()
        if sink is not None:
            given.write(sink, name)
            self._written[name] = self._steps.position.step


def parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of a list, however deep, each with the name that its place gives it; any other value as it is."""
    if not _holds_tensors(value):
        yield name, value
        return
    for i, part in enumerate(value):
        if part is not None:
            yield from parts_of(f"{name}_{i}", part)


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(_is_tensor(part) or _holds_tensors(part) for part in value)


def _is_tensor(value: Any) -> bool:
    """True if it is a tensor that has dimensions; numbers in a list are an array together."""
    try:
        shape = getattr(value, "shape", None)
        return shape is not None and len(shape) > 0
    except (RuntimeError, TypeError, ValueError):
        # It is not known, or the parts have several.
        return True
