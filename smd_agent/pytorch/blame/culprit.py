"""The culprit of a loss or gradients that are not finite: named at once, before an update has used them.

What is looked at first are the parameters and the batch. Then the model is called again as it was called in the step
(``replay``), and the first operation is looked for that makes a NaN out of no NaN. The nodes of the graph that the
replay makes are compared with those of the step, bit for bit: where they differ, nobody is blamed. Afterwards all is as
it was, so that the training goes on as without it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from smd_agent import guard
from smd_agent.core.failure_domains import CULPRITS
from smd_agent.core.recorder import Recorder
from smd_agent.framework.made_values import Made, in_words, of_values, rows_in_words
from smd_agent.framework.series_rows import At
from smd_agent.pytorch.arrays import PLAIN_CLASSES, tensors_in
from smd_agent.pytorch.blame import loss_graph
from smd_agent.pytorch.blame.graph import Graph
from smd_agent.pytorch.blame.operations import is_bad, kind_of, rows_not_finite
from smd_agent.pytorch.blame.replay import NotReplayed, Result, agrees, has_same_nodes, replay
from smd_agent.pytorch.model.tracked_module import KeptCall, TrackedModule
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.plain_access import optimized
from smd_agent.pytorch.series.every_step import CulpritFinder
from smd_agent.pytorch.series.late_rows import Number
from smd_agent.pytorch.tracing import graph_task, is_opaque

NAME = "recorder/blame"
_NAMED = 3


class Models(Protocol):
    """Has the models that are trained; a hook."""

    models: list[TrackedModule]
    recorder: Recorder

    def worker(self) -> tuple[int, int]:
        """Rank and number of ranks."""


class Culprits(CulpritFinder):
    """Those of a run: one of a loss, and one of gradients.

    Args:
        models: what is trained.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self._told: set[str] = set()
        self._root: weakref.ref[torch.Tensor] | None = None

    def step_ended(self) -> None:
        """The step has ended: its calls are kept no more."""
        self._root = None
        for tracked in self._models.models:
            tracked.calls.kept = None

    def pass_begins(self, at: At, roots: Any, numbers: list[Number]) -> None:
        """A backward pass is about to begin from these tensors, whose values are the numbers."""
        self._root = weakref.ref(roots) if type(roots) is torch.Tensor else None

    @CULPRITS.fence("looking for what has made the loss not finite")
    def of_loss(self, roots: Any) -> None:
        """A backward pass is about to begin from values that are not finite."""
        if not self._may_look("loss"):
            return
        live = _graph_of(roots)
        own = {id(one) for tracked in self._models.models for _, one in tracked.parameters()}
        if own.isdisjoint(map(id, live.leaves)) and not self._calls_in(live):
            # It is the loss of another training.
            return
        self._told.add("loss")
        known = self._known_before(live.leaves)
        if not known or "gradients" not in self._told:
            # Else it has been told what has spoilt the parameters.
            self._tell("loss is not finite", known or self._culprit_of_loss(live))

    @CULPRITS.fence("looking for what has made gradients not finite")
    def of_gradients(self, at: At, optimizer: Any) -> None:
        """An optimizer is about to use gradients that are not finite."""
        if "loss" in self._told or not self._may_look("gradients"):
            return
        bad = {id(one): one for one in optimized(optimizer) if one.grad is not None and is_bad(one.grad)}
        names = [name for tracked in self._models.models for name, one in tracked.parameters() if id(one) in bad]
        if names:
            self._told.add("gradients")
            self._tell(f"gradients are not finite ({_some(names)})", self._culprit_of_gradients(bad))

    def _may_look(self, kind: str) -> bool:
        """True if nothing has been told of such values, and they are there to be read."""
        return kind not in self._told and graph_task() == -1 and not is_opaque()

    def _tell(self, what: str, culprit: str) -> None:
        step = self._models.recorder.position.step
        guard.say(f"{what} at step {step}: {culprit}")
        sink = self._models.recorder.sink_of_step()
        if sink is not None:
            sink.add_text(NAME, [f"{what}: {culprit}"])

    # Who it is.

    def _culprit_of_loss(self, live: Graph) -> str:
        calls = self._calls_in(live)
        reason = ""
        behind = 0
        # What else is in the graph, such as an earlier call of the model, is not run again.
        is_all = bool(calls) and min(live.nodes) >= calls[0][1][3]
        for tracked, call in calls:
            try:
                result = replay(tracked, call, self._models.recorder.position)
            except NotReplayed as error:
                reason = f"{tracked.names.title} is not run again: {error}"
                continue
            made = result.operations.nan or _infinite_output(result)
            if not _agrees(live, call, result):
                reason = f"{tracked.names.title}, run again, has other values than in the step"
            elif made is not None:
                return f"{_way(live)}{in_words(made, tracked.names.title)}"
            else:
                behind = max(behind, call[3] + result.behind - result.before)
        return _after_model(live, behind if is_all and not reason else 0, reason)

    def _culprit_of_gradients(self, bad: dict[int, torch.Tensor]) -> str:
        known = self._known_before([*bad.values()])
        if known:
            return known
        root = None if self._root is None else self._root()
        # What its nodes have kept is gone by now.
        live = None if root is None else _graph_of(root)
        reason = ""
        behind = None
        for tracked in self._models.models:
            wanted = [one for _, one in tracked.parameters() if one.requires_grad and one.is_leaf]
            call = tracked.calls.kept
            if call is None or not any(id(one) in bad for one in wanted):
                continue
            try:
                result = replay(tracked, call, self._models.recorder.position, wanted)
            except NotReplayed as error:
                return f"not known; {tracked.names.title} is not run again: {error}"
            made = result.operations.nan or result.operations.infinite
            if live is not None and not has_same_nodes(live, call, result):
                reason = f"; {tracked.names.title}, run again, does something else than in the step"
            elif made is not None and made.backward_of:
                return f"{_way(live)}{in_words(made, tracked.names.title)}"
            else:
                behind = call[3] + result.behind - result.before
                reason = reason or f"; those of {tracked.names.title} by itself are finite"
        return f"{self._after_models(live, behind)}{reason}"

    def _after_models(self, live: Graph | None, behind: int | None) -> str:
        """The possible makers of gradients, where models by themselves have finite ones."""
        _, size = self._models.worker()
        if size > 1:
            return "made by the loss's own gradient, or on another rank"
        steep = [] if live is None or behind is None else loss_graph.steep_operations(live, behind)
        if steep:
            return f"made by the gradient of {' or '.join(steep)} in what computes the loss after the model"
        return "made by the loss's own gradient, or by an earlier call in the step"

    def _known_before(self, leaves: Sequence[torch.Tensor]) -> str:
        """The parameters or the batch that a model was given, where they are not finite; else nothing."""
        bad = {id(one) for one in leaves if is_bad(one)}
        for tracked in self._models.models:
            names = [name for name, one in tracked.parameters() if id(one) in bad]
            if names:
                return f"{_some(names)} had values that are not finite before: loaded, or of an earlier update"
        strange = next((one for one in leaves if id(one) in bad and type(one) is torch.nn.Parameter), None)
        if strange is not None:
            return f"a parameter of the shape {tuple(strange.shape)} had values that are not finite before"
        for tracked in self._models.models:
            for tensor in tensors_in(tracked.calls.kept[:2]) if tracked.calls.kept is not None else ():
                if type(tensor) in PLAIN_CLASSES and is_bad(tensor) and kind_of(tensor) == "NaN":
                    rows = f" in {rows_in_words(rows_not_finite(tensor))}" if tensor.dim() else ""
                    return f"the batch that {tracked.names.title} was given has NaN{rows}"
        return ""

    def _calls_in(self, live: Graph) -> list[tuple[TrackedModule, KeptCall]]:
        last = max(live.nodes, default=-1)
        found = [(one, call) for one in self._models.models if (call := one.calls.kept) is not None and call[3] <= last]
        return sorted(found, key=lambda pair: pair[1][3])


@apart
def _graph_of(roots: Any) -> Graph:
    return Graph(one for one in tensors_in(roots) if type(one) in PLAIN_CLASSES)


@apart
def _agrees(live: Graph, call: KeptCall, result: Result) -> bool:
    return agrees(live, call, result)


def _way(live: Graph | None) -> str:
    return "without the compiler, " if live is not None and live.is_compiled else ""


def _infinite_output(result: Result) -> Made | None:
    """The operation that has made an output infinite."""
    return result.operations.infinite if any(is_bad(one) for one in result.outputs or ()) else None


@apart
def _after_model(live: Graph, behind: int, reason: str) -> str:
    because = f" ({reason})" if reason else ""
    if reason and live.is_compiled:
        # The graph of compiled code has its outputs alone.
        return f"not known{because}"
    found = loss_graph.maker(live, behind)
    if found is None:
        names = {loss_graph.operation_of(node) for number, node in live.nodes.items() if number >= behind}
        after = f"what computes the loss after the model: {', '.join(sorted(names))}" if behind else "not known"
        return f"{after}{because}"
    rows = f"; {rows_in_words(found.rows)}" if found.rows else ""
    where = " in what computes the loss after the model" if behind else ""
    if found.beside:
        given = f"was given {found.kind} by what has no gradient, such as a batch or its labels"
        return f"{found.operation}{where} {given}{rows}{because}"
    return f"{found.operation}{where} made {found.kind}{of_values(found.given)}{rows}{because}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
