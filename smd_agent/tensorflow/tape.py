"""GradientTape loops: what is watched, and what a saved step saves.

Watched are ``GradientTape.__enter__`` (when a tape was opened) and ``GradientTape.gradient``, which every training loop
calls once for each loss. In a loop that runs eagerly its results are the values themselves. While a ``tf.function`` is
traced they are noted instead, and its calls are counted and saved by ``smd_agent.tensorflow.compiled``.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import transform

from smd_agent import session
from smd_agent.tensorflow.compiled import SLOT, CompiledStep, TrainingFunctions
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.naming import is_variable
from smd_agent.tensorflow.scaling import Unscaled, scale_of
from smd_agent.tensorflow.steps import TapeSteps
from smd_agent.tensorflow.strategy import is_other_replica
from smd_agent.tensorflow.tape_notes import GradientCall, NoteBook, flat_gradients, warn_if_hidden
from smd_agent.tensorflow.tape_values import TapeValues
from smd_agent.tensorflow.variant import Tap

OPENED = "_smd_agent_opened"


class _Depth(threading.local):
    """How many calls of ``gradient`` this thread is in: what is recomputed on the way asks tapes of its own."""

    gradients = 0


class TapeWatch:
    """Sees every gradient that a tape computes.

    It rests while another part of the hook counts the steps itself (``hook.pulse.inside``).

    Args:
        find_hook: gives the hook to save with when the first gradient of a variable comes up; None: there is none.
    """

    def __init__(self, find_hook: Callable[[], TensorflowHook | None]) -> None:
        self.book = NoteBook()
        self._find_hook = find_hook
        self._hook: TensorflowHook | None = None
        self._functions = TrainingFunctions()
        self._scaled: dict[int, tuple[Any, Any, Any]] = {}
        self._installed = False
        self._depth = _Depth()
        self.steps: TapeSteps
        self.values: TapeValues

    def install(self) -> None:
        """Begin to watch all tapes; called once."""
        tape = tf.GradientTape
        enter = tape.__enter__

        @functools.wraps(enter)
        def entered(tape: Any) -> Any:
            self.opened(tape)
            return enter(tape)

        tape.__enter__ = entered
        tape.gradient = self._watched(tape.gradient)
        self.watch_functions()
        self._installed = True

    def watch_functions(self) -> None:
        """Have functions that are traced from now on looked at."""
        if self._traced not in transform.CONCRETE_FUNCTION_CALLBACKS:
            transform.CONCRETE_FUNCTION_CALLBACKS.append(self._traced)

    def wrap_tape(self, tape: Any) -> Any:
        """Watch this one tape, for a program whose tapes are not all watched; returns it."""
        self.watch_functions()
        if not self._installed and OPENED not in tape.__dict__:
            watched = self._watched(type(tape).gradient)
            tape.gradient = functools.partial(watched, tape)
            self.opened(tape)
        return tape

    def _watched(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        depth = self._depth

        @functools.wraps(gradient)
        def computed(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            depth.gradients += 1
            try:
                gradients = gradient(tape, target, sources, *args, **kwargs)
            finally:
                depth.gradients -= 1
            if not depth.gradients:
                self.saw(tape, target, sources, gradients)
            return gradients

        return computed

    def opened(self, tape: Any) -> None:
        """A tape begins to record."""
        hook = self._hook
        tape.__dict__[OPENED] = -1 if hook is None else hook.pulse.step

    def resting(self) -> bool:
        """Whether gradients are none of our business now."""
        hook = session.current()
        return isinstance(hook, TensorflowHook) and hook.pulse.inside

    @session.fence("watching a GradientTape")
    def saw(self, tape: Any, target: Any, sources: Any, gradients: Any) -> None:
        """A tape has computed gradients."""
        if self.resting():
            return
        first = _first_variable(sources)
        if first is None or is_other_replica():
            return
        if not tf.executing_eagerly():
            self.book.note_gradients(tf.compat.v1.get_default_graph(), target, sources, gradients)
            return
        hook = self.hook()
        if hook is None:
            return
        self.steps.reach(first, tape.__dict__.get(OPENED, hook.pulse.step))
        # It has its place; asked again, it stays there.
        tape.__dict__[OPENED] = hook.pulse.step - 1
        if hook.pulse.saving:
            losses, scale = self._losses(target)
            pairs = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=False)
            found = [(s, _unscaled(g, scale)) for s, g in pairs if is_variable(s)]
            self.values.weights([variable for variable, _ in found])
            self.values.gradients(losses, found)
        self._scaled.clear()

    def _losses(self, target: Any) -> tuple[list[Any], float]:
        """What was differentiated as it was before scaling, and the scale of its gradients."""
        losses, scale = [], 1.0
        for tensor in tf.nest.flatten(target):
            note = self._scaled.get(id(tensor))
            if note is not None:
                _, tensor, optimizer = note
                scale = scale_of(optimizer)
            losses.append(tensor)
        return losses, scale

    @session.fence("noting a scaled loss")
    def scaled(self, optimizer: Any, loss: Any, scaled: Any) -> None:
        """A loss was scaled."""
        if self.resting():
            return
        if not tf.executing_eagerly():
            self.book.note_scaling(tf.compat.v1.get_default_graph(), optimizer, loss, scaled)
        elif self._hook is None or self._hook.pulse.train.step + 1 >= self._hook.pulse.train.due:
            # The scaled tensor is kept too, so that its id stays its own until the gradients have come.
            self._scaled[id(scaled)] = (scaled, loss, optimizer)

    def hook(self) -> TensorflowHook | None:
        """The hook to save with: the one of the process."""
        hook = self._hook
        if hook is None or hook is not session.current():
            hook = self._find_hook()
            if hook is None:
                return None
            self._hook = hook
            self.steps = TapeSteps(hook)
            self.values = TapeValues(hook)
        return hook

    # What compiled functions ask.

    def calls_in(self, definition: Any) -> Iterator[GradientCall]:
        """The gradient calls of a function and of those that it calls."""
        return self._functions.calls_in(definition)

    def taps_of(self, name: str) -> Sequence[Tap]:
        """What is to be had from a function itself, by its name."""
        return self._functions.taps_of(name)

    @session.fence("looking at a tf.function")
    def _traced(self, concrete: Any) -> None:
        if self._functions.names:
            warn_if_hidden(concrete.graph, self._functions.names)
        notes = self.book.of(concrete.graph)
        if notes is None or not (notes.calls or notes.trains_inside):
            return
        step = CompiledStep(self, concrete, notes.calls)
        concrete.__dict__[SLOT] = step
        self._functions.add(concrete.function_def.signature.name, step)


def _unscaled(value: Any, scale: float) -> Any:
    return value if scale == 1.0 or value is None else Unscaled(value, scale)


def _first_variable(sources: Any) -> Any:
    if isinstance(sources, (list, tuple)) and sources and is_variable(sources[0]):
        return sources[0]
    return next((source for source in tf.nest.flatten(sources) if is_variable(source)), None)


_watches: list[TapeWatch] = []


def the_watch(find_hook: Callable[[], TensorflowHook | None] | None = None) -> TapeWatch:
    """The one watch of the process, made now if there is none.

    Args:
        find_hook: for a new one; if None, it takes the process's hook.
    """
    if not _watches:
        _watches.append(TapeWatch(find_hook or _current_hook))
    return _watches[0]


def _current_hook() -> TensorflowHook | None:
    hook = session.current()
    return hook if isinstance(hook, TensorflowHook) else None
