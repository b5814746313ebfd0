"""Keeper of a run's bundles: what a step was given, before an update has used its gradients.

It is kept of the first step that goes wrong, and of those that somebody asks for. A step has gone wrong when a backward
pass begins from a loss that is not finite, when an optimizer is about to use gradients that are not, or when an error
ends the program in it. In other steps nothing is kept but references to what a model was given.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any, Protocol

import torch

from smd_agent import guard
from smd_agent.core.failure_domains import BUNDLES
from smd_agent.core.recorder import Recorder
from smd_agent.core.run_output import worker_name
from smd_agent.formats.bundles import ASKED_FOR, BUFFERS, GIVEN, NEAR, RANDOM, WEIGHTS, Bundle, bundle_text
from smd_agent.formats.paths import bundle_folder
from smd_agent.formats.safetensors import header
from smd_agent.framework.environment import VERSIONS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.series_rows import At
from smd_agent.framework.started_program import current_folder, program_words
from smd_agent.interpreter.callers import callers
from smd_agent.printable import some_of
from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.blame.graph import Graph
from smd_agent.pytorch.blame.operations import is_bad
from smd_agent.pytorch.bundles.near_call import arguments, name_of, own_frames, variables
from smd_agent.pytorch.bundles.operations_kept import gradients_of, graph_of, numbers_of, operations_of
from smd_agent.pytorch.bundles.raw_bytes import DTYPES, bytes_of, can_be_kept
from smd_agent.pytorch.model.first_call import FirstCall, GivenCall
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import named_parameters
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import held, named_parts, optimized
from smd_agent.pytorch.series.every_step import CulpritFinder
from smd_agent.pytorch.series.late_rows import Number
from smd_agent.pytorch.torch_compile import has_compiled
from smd_agent.pytorch.tracing import graph_task, is_opaque

_BUFFERS_MOVED = "buffers such as running means are as the step's own call has left them"
_NAMED = 3
_OF_ALL_RANKS = "gradients were those of all ranks together: it may be another one that has made them so"


class Run(Protocol):
    """A run of which a bundle is kept; a hook."""

    models: list[TrackedModule]
    recorder: Recorder

    def worker(self) -> tuple[int, int]:
        """Rank and number of ranks."""

    def environment(self) -> Any:
        """Facts as text, by group and name."""


class BundleKeeper(CulpritFinder):
    """The one of a run, which writes one bundle of what goes wrong.

    Args:
        run: the hook.
        first: the call of the current step.

    Attributes:
        most: bytes of a bundle; with 0 there is none.
        culprits: told of the same.
    """

    def __init__(self, run: Run, first: FirstCall) -> None:
        self._run = run
        self._first = first
        self.most = 0
        self.culprits = CulpritFinder()
        self._has_kept = False
        # Told of the bundle that was asked for, of the step that began then.
        self._asks: Callable[[str, int], object] | None = None
        self._asked = 0
        self._began = time.monotonic()
        # Of the last backward pass.
        self._losses: list[Number] = []

    def begin(self) -> None:
        """Look at the calls of models from now on."""
        if self.most and not self._has_kept:
            self._first.begin()

    def keep(self, done: Callable[[str, int], object]) -> str:
        """Have what the step is given that begins kept; see ``Keeper``."""
        if not self.most:
            return "bundles are switched off"
        if not self._run.recorder.series.wanted:
            return "the series is switched off, with which the steps of a training are looked at"
        if updates.rest:
            updates.go_on()
        self._first.begin()
        self._asks, self._asked = done, self._run.recorder.position.step
        return ""

    def pass_begins(self, at: At, roots: Any, numbers: list[Number]) -> None:
        """A backward pass is about to begin from these tensors, whose values are the numbers."""
        if self._asks is not None:
            self._keep_asked(at, roots, numbers)
        for number in numbers:
            if type(number) is float and number - number != 0.0:
                self._keep_loss(at, roots, number)
        self._first.passed = True
        self._losses = numbers
        self.culprits.pass_begins(at, roots, numbers)

    def of_loss(self, roots: Any) -> None:
        """A backward pass is about to begin from values that are not finite."""
        self.culprits.of_loss(roots)

    def of_gradients(self, at: At, optimizer: Any) -> None:
        """An optimizer is about to use gradients that are not finite, or so large that their norm is not."""
        self._keep_gradients(at, optimizer)
        self.culprits.of_gradients(at, optimizer)

    def step_ended(self) -> None:
        """The current training step has ended."""
        self._first.forget()
        self.culprits.step_ended()

    def rests(self, now: bool) -> None:
        """Nothing is told of some steps to come, or of those to come all is told again."""
        self._first.rest(now)

    @fence("keeping what an error has ended", BUNDLES)
    def run_ends(self) -> None:
        """The program ends, perhaps with an error that has left a training step."""
        error = getattr(sys, "last_value", None)
        call = self._first.call
        if call is None or not is_a(error, Exception):
            return
        position = self._run.recorder.interrupted or self._run.recorder.position
        self._keep_wrong(At.current(position), call, guard.describe(error), "", [*_frames_of(error.__traceback__)])

    @fence("keeping what has made the loss not finite", BUNDLES)
    def _keep_loss(self, at: At, roots: Any, loss: float) -> None:
        found = None if self._has_kept else self._graph_of(roots)
        if found is not None:
            call, graph = found
            self._keep_wrong(at, call, f"the loss is {loss}", repr(loss), [*callers()], operations=operations_of(graph))

    @fence("keeping a step that was asked for", BUNDLES)
    def _keep_asked(self, at: At, roots: Any, numbers: list[Number]) -> None:
        if at.step != self._asked:
            # No pass of that step was seen, which has been answered.
            self._asks = None
            if self._has_kept:
                self._first.end()
            return
        found = self._graph_of(roots)
        if found is None:
            return
        call, graph = found
        if not self._run.recorder.output.begin(at.mode):
            self._answer("it is not kept: this worker saves nothing")
            return
        losses = ", ".join(repr(float(number)) for number in numbers)
        why = self._keep(at, call, ASKED_FOR, losses, [*callers()], operations_of(graph))
        if why:
            self._answer(f"it is not kept: {why}")
        if self._has_kept:
            self._first.end()

    @fence("keeping what has made gradients not finite", BUNDLES)
    def _keep_gradients(self, at: At, optimizer: Any) -> None:
        call = self._first.call
        if call is None or self._has_kept or graph_task() != -1 or is_opaque():
            return
        found = gradients_of(self._run.models)
        used = {id(one.grad) for one in optimized(optimizer)}
        bad = [name for name, one in found.items() if id(one) in used and is_bad(one)]
        if bad:
            losses = ", ".join(repr(float(number)) for number in self._losses)
            why = f"gradients of {some_of(bad, _NAMED)} are not finite"
            self._keep_wrong(at, call, why, losses, [*callers()], gradients=numbers_of(found))

    def _graph_of(self, roots: Any) -> tuple[GivenCall, Graph] | None:
        """The call that a loss is of, and its graph; None where it is the loss of another training."""
        call = self._first.call
        if call is None or graph_task() != -1 or is_opaque():
            return None
        graph = graph_of(roots)
        own = {id(one) for tracked in self._run.models for _, one in tracked.parameters()}
        return None if own.isdisjoint(map(id, graph.leaves)) else (call, graph)

    def _answer(self, text: str, step: int = -1) -> None:
        """Tell who has asked for the current step, if anybody has."""
        asks, self._asks = self._asks, None
        if asks is not None:
            asks(text, step)

    def _keep_wrong(self, at: At, call: GivenCall, why: str, loss: str, frames: list[FrameType], **more: Any) -> None:
        """Keep the first step that goes wrong."""
        if self._has_kept:
            return
        self._has_kept = True
        output = self._run.recorder.output
        if not output.begin(at.mode):
            self._first.end()
            return
        unkept = self._keep(at, call, why, loss, frames, **more)
        self._first.end()
        wrong = f"step {at.mode_step} has gone wrong ({why})"
        if unkept:
            guard.say(f"{wrong}; it is not kept: {unkept}")
        else:
            command = f"python -m smd_agent replay {output.sink.location}"
            guard.say(f"{wrong}: {command} makes it again and names what made it so")

    def _keep(
        self,
        at: At,
        call: GivenCall,
        why: str,
        loss: str,
        frames: list[FrameType],
        operations: Sequence[list[Any]] = (),
        gradients: Sequence[list[Any]] = (),
    ) -> str:
        """Keep the current step; why that cannot be, in words, "" if it can."""
        output = self._run.recorder.output
        near = own_frames(frames)
        changed = call.changed()
        tensors = {**self._of_models(), **_of_call(call, near, changed)}
        unfit = [name for name, one in tensors.items() if not can_be_kept(one)]
        if unfit:
            return f"{unfit[0]} is no plain tensor"
        size = sum(one.nbytes for one in tensors.values())
        if size > self.most:
            return f"its {size >> 20} MiB are more than bundle_megabytes allows ({self.most >> 20})"
        rank, ranks = self._run.worker()
        bundle = Bundle(
            step=at.mode_step,
            global_step=at.step,
            why=why,
            loss=loss,
            model=call.tracked.names.title,
            casts=[[device, str(dtype).removeprefix("torch.")] for device, dtype in call.casts],
            frames=[name_of(frame) for frame in near],
            operations=[*operations],
            gradients=[*gradients],
            changed=[path for path, one in arguments(call.args, call.kwargs) if id(one) in changed],
            notes=[
                *([_OF_ALL_RANKS] if gradients and ranks > 1 else ()),
                *([_BUFFERS_MOVED] if any(name.startswith(BUFFERS) for name in tensors) else ()),
            ],
            words=program_words(),
            compiled=has_compiled(),
            folder=current_folder(),
            seconds=round(time.monotonic() - self._began, 1),
            versions=dict(self._run.environment().get(VERSIONS, {})),
        )
        pieces = [header((name, DTYPES[one.dtype], tuple(one.shape)) for name, one in tensors.items())]
        folder = bundle_folder(at.mode_step, worker_name(rank) if ranks > 1 else "")
        output.sink.write_bundle(folder, [*pieces, *map(bytes_of, tensors.values())], bundle_text(bundle))
        command = f"python -m smd_agent replay {output.sink.location} --step {at.mode_step}"
        self._answer(f"obeyed at step {at.mode_step}: {command} makes it again", at.mode_step)
        return ""

    def _of_models(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for tracked in self._run.models:
            model, title = tracked.model, tracked.names.title
            if model is None:
                continue
            found |= {f"{WEIGHTS}{title}/{name}": one for name, one in named_parameters(model)}
            for prefix, part in named_parts(model):
                for name, one in held(part, "_buffers"):
                    if type(one) in PLAIN_CLASSES:
                        found[f"{BUFFERS}{title}/{prefix + '.' if prefix else ''}{name}"] = one
        return found


def _of_call(call: GivenCall, near: list[FrameType], changed: set[int]) -> dict[str, torch.Tensor]:
    """The tensors that the call was given, and those near it; each once."""
    found = {f"{RANDOM}{device}": state for device, state in call.random}
    given = [(path, one) for path, one in arguments(call.args, call.kwargs) if id(one) not in changed]
    found |= {f"{GIVEN}{path}": one for path, one in given if can_be_kept(one)}
    rows = {one.shape[0] for _, one in given if one.dim()}
    most = sum(one.numel() for _, one in given)
    seen = {*changed, *(id(one) for _, one in given)}
    for number, frame in enumerate(near):
        for path, one in variables(frame):
            # Else it is the whole of the data, of which the batch is a part.
            of_batch = one.numel() <= most or (one.dim() and one.shape[0] in rows)
            if id(one) not in seen and of_batch and can_be_kept(one):
                found[f"{NEAR}{number}/{path}"] = one
            seen.add(id(one))
    return found


def _frames_of(traceback: TracebackType | None) -> Iterator[FrameType]:
    """The frames that an error has left, the innermost first."""
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return reversed(frames)
