"""A step that is made again by a bundle, in a process that ``replay`` has started: the first that trains such a model,
or the one of the same number.

What the bundle has takes the place of what the program has, in the same tensors: parameters, buffers, the arguments of
the call, and what variables of the functions above hold. So nothing of the program is called in another way. The
program ends before the update.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

import torch

from smd_agent import guard
from smd_agent.core.recorder import Recorder
from smd_agent.core.requests import TrainingStopped
from smd_agent.formats.bundles import BUFFERS, GIVEN, NEAR, RANDOM, WEIGHTS, Bundle
from smd_agent.formats.replays import Order, Replayed, order_of, text_of
from smd_agent.framework.made_values import Made, in_words, rows_in_words
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_rows import At
from smd_agent.interpreter.callers import callers
from smd_agent.pytorch.blame.operations import is_bad, kind_of, rows_not_finite
from smd_agent.pytorch.bundles.near_call import arguments, name_of, own_frames, variables
from smd_agent.pytorch.bundles.operations_kept import gradients_of, graph_of, numbers_of, operations_of
from smd_agent.pytorch.bundles.raw_bytes import tensor_of
from smd_agent.pytorch.bundles.watched import WatchedOperations
from smd_agent.pytorch.model.first_call import FirstCall
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import named_parameters
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import apart, without_gradients
from smd_agent.pytorch.plain_access import held, named_parts
from smd_agent.pytorch.series.every_step import CulpritFinder
from smd_agent.pytorch.series.late_rows import Number
from smd_agent.storage.atomic_file import replace_file
from smd_agent.storage.bundle_reader import read_bundle, read_tensors

_WHY = "the step was made again"


class ReplayedCall(FirstCall):
    """Has calls of models put right before they are made.

    Args:
        before: called with a model, and with what it is given.
    """

    def __init__(self, before: Callable[[TrackedModule, Any, Any], object]) -> None:
        super().__init__()
        self.wanted = True
        self._before = before

    def rest(self, now: bool) -> None:
        """There are no pauses."""

    def end(self) -> None:
        """All calls are looked at."""

    def take(self, tracked: TrackedModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A model is about to be called to be trained."""
        self._before(tracked, args, kwargs)


class Replay(CulpritFinder):
    """The step of a process that is made again.

    Args:
        text: of the order.
        recorder: of the hook.

    Attributes:
        calls: in the place of what keeps the first call of a step.
    """

    def __init__(self, text: str, recorder: Recorder) -> None:
        self._order: Order = order_of(text)
        self._recorder = recorder
        self._result = Replayed()
        self._models: list[TrackedModule] = []
        bundle = read_bundle(Path(self._order.bundle))
        self._bundle = Bundle(0, 0, "", "", "") if bundle is None else bundle
        self._tensors: dict[str, torch.Tensor] = {}
        self._operations: WatchedOperations | None = None
        self._dtype: torch.dtype | None = getattr(torch, self._order.dtype) if self._order.dtype else None
        self.calls = ReplayedCall(self._before)

    # What the hook tells.

    def pass_begins(self, at: At, roots: Any, numbers: list[Number]) -> None:
        """A backward pass is about to begin from these tensors, whose values are the numbers."""
        if not self._result.reached or self._result.passed:
            return
        result = self._result
        result.passed = True
        values = [float(number) for number in numbers]
        result.loss = ", ".join(map(repr, values))
        if self._of_gradients:
            # What is to be seen is yet to come.
            if self._operations is not None:
                self._operations.begin_backward()
            return
        made = self._stop_watching()
        if any(map(_is_bad_number, values)):
            result.maker = self._maker(made)
            result.alike = _is_bad_number(float(self._bundle.loss or 0.0))
        self._compare(operations_of(graph_of(roots)), self._bundle.operations)
        self._write()

    def run_ends(self) -> None:
        """The program ends, perhaps with an error."""
        error = getattr(sys, "last_value", None)
        if is_a(error, Exception):
            self._result.error = guard.describe(error)
        if self._operations is not None and self._result.passed:
            self._pass_has_ended()
        self._write()

    # How it is done.

    @property
    def _of_gradients(self) -> bool:
        """True if the step went wrong in its gradients."""
        return bool(self._bundle.gradients)

    def _pass_has_ended(self) -> None:
        """Look at the gradients of the pass, which an update is about to use."""
        result = self._result
        made = self._stop_watching()
        found = gradients_of(self._models)
        result.broken = [name for name, one in found.items() if is_bad(one)]
        if result.broken:
            result.maker = self._maker(made)
            result.alike = True
        self._compare(numbers_of(found), self._bundle.gradients)

    def _stop_watching(self) -> Made | None:
        """See no more operations; the one that has made the first value that is not finite."""
        operations, self._operations = self._operations, None
        if operations is None:
            return None
        operations.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        if self._dtype is not None:
            torch.set_default_dtype(torch.float32)
        return operations.maker

    def _maker(self, made: Made | None) -> str:
        words = "" if made is None else in_words(made, "what computes the loss")
        # A mask of -inf is none, as long as something else is.
        return self._given_not_finite((WEIGHTS, GIVEN), words != "") or words or self._given_not_finite((NEAR,))

    def _before(self, tracked: TrackedModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._result.passed:
            self._end()
        if At.current(self._recorder.interrupted or self._recorder.position).mode_step < self._order.at:
            return
        if updates.rest:
            updates.go_on()
        failure = guard.attempt(lambda: self._put_in_place(tracked, args, kwargs))
        if failure is not None:
            self._result.problem = str(failure) if is_a(failure, _Unlike) else guard.describe(failure)
            self._end()

    def _put_in_place(self, tracked: TrackedModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not self._tensors:
            content, placed = read_tensors(Path(self._order.bundle))
            self._tensors = {name: tensor_of(content, one) for name, one in placed.items()}
        if tracked not in self._models:
            self._models.append(tracked)
            self._load(tracked)
        if self._result.reached:
            return
        self._result.reached = True
        updates.end_before_next(self._end)
        if self._order.eager:
            torch.compiler.set_stance("force_eager")
        if self._dtype is not None:
            torch.set_default_dtype(self._dtype)
        given = self._put(GIVEN, arguments(args, kwargs))
        self._put_near()
        for name, state in self._of(RANDOM).items():
            _set_random(name, state)
        names = {id(layer): name for name, layer in tracked.layers()}
        names |= {} if tracked.model is None else {id(tracked.model): tracked.names.title}
        rows = next((one.shape[0] for one in given if one.dim()), 0)
        self._operations = WatchedOperations(names, rows, self._dtype)
        self._operations.__enter__()  # type: ignore[no-untyped-call]

    def _load(self, tracked: TrackedModule) -> None:
        model, title = tracked.model, tracked.names.title
        if model is None:
            return
        weights = self._of(f"{WEIGHTS}{title}/")
        own = dict(named_parameters(model))
        unlike = [name for name in {**own, **weights} if _shape(own.get(name)) != _shape(weights.get(name))]
        if unlike:
            name = unlike[0]
            here, there = _shape(own.get(name)), _shape(weights.get(name))
            raise _Unlike(f"{title} is another model than in the run: {name} has the shape {here}, there {there}")
        buffers = {
            f"{prefix}.{name}" if prefix else name: one
            for prefix, part in named_parts(model)
            for name, one in held(part, "_buffers")
        }
        self._set_all(own, weights)
        self._set_all(buffers, self._of(f"{BUFFERS}{title}/"))

    def _put(self, kind: str, found: Iterable[tuple[str, torch.Tensor]]) -> list[torch.Tensor]:
        """Put tensors of the bundle in the place of those with the same paths; those that are in place."""
        there, here = self._of(kind), dict(found)
        self._result.missing += [f"{path} of what the model is given" for path in there if path not in here]
        self._set_all(here, there)
        return [here[path] for path in there if path in here]

    def _put_near(self) -> None:
        frames = own_frames(callers())
        left = [(_of_any_folder(name_of(frame)), frame) for frame in frames]
        for number, name in enumerate(self._bundle.frames):
            there = self._of(f"{NEAR}{number}/")
            found = next((pair for pair in left if pair[0] == _of_any_folder(name)), None)
            if found is not None:
                left.remove(found)
                self._set_all(dict(variables(found[1])), there)
            else:
                self._result.missing += [f"{path} of {name[1]} in {os.path.basename(name[0])}" for path in there]

    def _of(self, start: str) -> dict[str, torch.Tensor]:
        """The tensors of the bundle whose names begin so, by the rest of these."""
        return {name[len(start) :]: one for name, one in self._tensors.items() if name.startswith(start)}

    def _set_all(self, here: dict[str, Any], there: dict[str, torch.Tensor]) -> None:
        device = torch.device(self._order.device) if self._order.device else None
        for name, value in there.items():
            if is_a(here.get(name), torch.Tensor):
                _set(here[name], value, device, self._dtype)

    def _given_not_finite(self, kinds: tuple[str, ...], masks: bool = False) -> str:
        words = {WEIGHTS: "the weights had", GIVEN: "the batch that the model was given has", NEAR: "there is"}
        for kind in kinds:
            for name, one in self._of(kind).items():
                bad = kind_of(one) if one.is_floating_point() and one.numel() else ""
                if bad and not (masks and bad == "-inf"):
                    rows = (
                        f" in {rows_in_words(rows_not_finite(one), one.shape[0])}"
                        if one.dim() and kind != WEIGHTS
                        else ""
                    )
                    return f"{words[kind]} {bad}{rows}: {name.partition('/')[2] if kind != GIVEN else name}"
        return ""

    def _compare(self, here: list[list[Any]], there: list[list[Any]]) -> None:
        result = self._result
        differs = "" if self._order.changes else self._difference(here, there)
        # What watches operations keeps the compiler off.
        result.alike = result.alike and self._bundle.compiled and differs != ""
        if result.alike:
            result.maker = f"without the compiler, {result.maker}" if result.maker else ""
        else:
            result.differs = differs

    def _difference(self, here: list[list[Any]], there: list[list[Any]]) -> str:
        """In what the step differs from that of the run; nothing where it is the same, bit for bit."""
        if self._bundle.loss and self._bundle.loss != self._result.loss:
            what = f"the loss is {self._result.loss}, in the run {self._bundle.loss}"
        else:
            what = "" if here == there or not there else "the loss is the same"
        kind = "gradient" if self._of_gradients else "operation"
        for place, (one, other) in enumerate(zip(here, there, strict=False)):
            if one != other:
                of = f"{other[0]}, {kind} {place + 1} of {len(there)}"
                same = one[0] == other[0]
                return f"{what}; {of}, has {'other values' if same else f'become {one[0]}'}"
        return what

    def _end(self) -> NoReturn:
        if self._operations is not None and self._result.passed:
            self._pass_has_ended()
        self._write()
        raise TrainingStopped(self._recorder.position.step, _WHY)

    def _write(self) -> None:
        if self._result.differs:
            # It is another step.
            self._result.maker = ""
        path = Path(self._order.result)
        replace_file(path.parent, path.name, text_of(self._result).encode())


def _is_bad_number(value: float) -> bool:
    return value - value != 0.0


class _Unlike(Exception):
    """The program has something else than the bundle; what, in words."""


def _shape(tensor: Any) -> tuple[int, ...] | None:
    return None if tensor is None else tuple(tensor.shape)


def _of_any_folder(name: list[str]) -> tuple[str, str]:
    return os.path.basename(name[0]), name[1]


@apart
@without_gradients
def _set(tensor: torch.Tensor, value: torch.Tensor, device: torch.device | None, dtype: torch.dtype | None) -> None:
    """Give a tensor other values, and with them their shape."""
    wanted = dtype if dtype is not None and value.is_floating_point() else value.dtype
    tensor.data = value.to(device=tensor.device if device is None else device, dtype=wanted, copy=True)


@apart
def _set_random(name: str, state: torch.Tensor) -> None:
    kind, _, place = name.partition(":")
    if kind == "cpu":
        torch.default_generator.set_state(state)
    elif int(place) < len(torch.cuda.default_generators):
        torch.cuda.default_generators[int(place)].set_state(state)
