"""Values of a step that are still on their way from an accelerator: asked for while it runs, written when they are in.

A step with such values is not handed to the disk when it ends but when all of them have arrived, in the order of the
steps. Nobody waits for that unless more than ``WAITING`` steps would be held, or the run is flushed or ends.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from smd_agent.core.channel_axes import ChannelAxes
from smd_agent.core.distribution import from_counts
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.names import reduction_name
from smd_agent.core.ports import HeldStep, StepSink
from smd_agent.core.reduction_config import HISTOGRAM_OP
from smd_agent.core.save_plan import Group
from smd_agent.core.value_writing import shares_of, write_raw
from smd_agent.interpreter.never_freed import never_free
from smd_agent.pytorch.arrays import PLAIN_CLASSES, has_memory, to_array
from smd_agent.pytorch.device import histograms
from smd_agent.pytorch.device.channel_shares import DeviceShares
from smd_agent.pytorch.device.reductions import (
    Buffers,
    DeviceReductions,
    HostCopy,
    Snapshot,
    known_on_device,
    reducible_on_device,
)
from smd_agent.pytorch.own_operations import without_gradients

WAITING = 2


def on_device(tensor: torch.Tensor) -> bool:
    """True if a tensor's values are anywhere but in the host's memory."""
    return tensor.device.type not in ("cpu", "meta")


def comes_later(value: Any, position: int, group: Group) -> bool:
    """True if what a group wants of a value can be asked for now and written later."""
    return (
        type(value) in PLAIN_CLASSES
        and on_device(value)
        and has_memory(value)
        and all(reducible_on_device(value, reduced.ops) for reduced in group.reduced if position in reduced.members)
        and (known_on_device(value) or not _needs_known(position, group))
    )


def _needs_known(position: int, group: Group) -> bool:
    return position in (*group.histograms, *group.pictured) or any(position in part.members for part in group.shares)


class LateGroup:
    """The values that were asked for of several tensors of one device.

    Args:
        names: the tensors' names.
        tensors: of which everything that the group wants is wanted; may be overwritten afterwards.
        group: what is saved of them.
        axes: of the channels of layers' outputs.
        buffers: memory to use again.
    """

    @without_gradients
    def __init__(
        self,
        names: Sequence[str],
        tensors: Sequence[torch.Tensor],
        group: Group,
        axes: ChannelAxes,
        buffers: Buffers,
    ) -> None:
        group = group.for_sizes(lambda i: tensors[i].numel())
        self._names = names
        self._shapes = {
            i: (tuple(tensors[i].shape), str(tensors[i].dtype).removeprefix("torch.")) for i in group.shapes
        }
        self._reduced = [
            (reduced, DeviceReductions([tensors[i] for i in reduced.members], reduced.ops)) for reduced in group.reduced
        ]
        wanted = list(shares_of(names, {i: tensor.dim() for i, tensor in enumerate(tensors)}, group, axes))
        self._share_tags = tuple(tag for *_, tags in wanted for tag in tags)
        self._shares = DeviceShares([(tensors[i], axis, kinds) for i, axis, kinds, _ in wanted])
        self._histograms = {i: HostCopy(histograms.histogram_of(tensors[i])) for i in group.histograms}
        # Counts below 2**53 are float64 as they are, so that one copy brings them and the sums.
        self._pictured = {
            i: HostCopy(torch.cat([histograms.finite_sums(tensors[i]), histograms.histogram_of(tensors[i], fine=True)]))
            for i in group.pictured
            if tensors[i].numel() > 1 and tensors[i].dtype is not torch.bool
        }
        self._raw = {i: Snapshot(tensors[i], buffers) for i in group.raw}
        self._forgotten: set[str] = set()

    def forget(self, names: set[str]) -> None:
        """Have tensors and scalars of these names not saved: others follow."""
        self._forgotten |= names

    def ready(self) -> bool:
        """True if everything has arrived."""
        return (
            self._shares.ready()
            and all(reductions.ready() for _, reductions in self._reduced)
            and all(copy.ready() for copy in (*self._histograms.values(), *self._pictured.values()))
            and all(snapshot.ready() for snapshot in self._raw.values())
        )

    def write(self, sink: StepSink) -> None:
        """Put everything into its step; waits for what has not arrived."""
        for i, (shape, dtype) in self._shapes.items():
            sink.add_shape(self._names[i], self._names[i], shape, dtype)
        for reduced, reductions in self._reduced:
            sink.add_scalars(reduced.tags, reductions.result().reshape(-1))
        if self._share_tags:
            sink.add_scalars(self._share_tags, self._shares.result())
        for i, counts in self._histograms.items():
            sink.add(reduction_name(*HISTOGRAM_OP, self._names[i]), counts.array())
        for i, copy in self._pictured.items():
            numbers = copy.array()
            sink.add_distribution(self._names[i], from_counts(numbers[4:].astype(np.int64), numbers[:4].tolist()))
        for i, snapshot in self._raw.items():
            found = to_array(snapshot.read())
            if found is not None:
                write_raw(sink, self._names[i], found)
            snapshot.free()
        if self._forgotten:
            sink.drop(self._forgotten)


class Arrivals:
    """The steps that wait for values, oldest first.

    Args:
        commit: hands a complete step to the disk.
        axes: of the channels of layers' outputs.
    """

    def __init__(self, commit: Callable[[HeldStep], None], axes: ChannelAxes) -> None:
        self._commit = commit
        self._axes = axes
        self._process = os.getpid()
        self._buffers: Buffers = {}
        self._groups: list[LateGroup] = []
        self._steps: deque[tuple[HeldStep, list[LateGroup]]] = deque()

    @property
    def waiting(self) -> bool:
        """True if a step that has ended is not on its way to the disk."""
        return bool(self._steps)

    def ask(self, names: Sequence[str], tensors: Sequence[torch.Tensor], group: Group) -> None:
        """Ask for values of the current step, device by device."""
        self._groups.append(LateGroup(names, tensors, group, self._axes, self._buffers))

    def bring(self, sink: StepSink) -> None:
        """Wait for what was asked for in the current step, and write it into that."""
        groups, self._groups = self._groups, []
        for group in groups:
            group.write(sink)

    def forget(self, names: set[str]) -> None:
        """Have what was asked for of these names in the current step not saved."""
        for group in self._groups:
            group.forget(names)

    def exchange(self, groups: list[LateGroup]) -> list[LateGroup]:
        """Have these as what was asked for in the current step; what was asked for until now is returned."""
        groups, self._groups = self._groups, groups
        return groups

    def end(self, held: HeldStep) -> None:
        """Take a step that has ended, with what was asked for in it."""
        groups, self._groups = self._groups, []
        if not groups and not self._steps:
            self._commit(held)
            return
        self._steps.append((held, groups))
        self.settle()

    def settle(self, wait: bool = False) -> None:
        """Hand over the steps whose values are in; if asked to, wait for all."""
        while self._steps:
            held, groups = self._steps[0]
            if not (wait or len(self._steps) > WAITING or all(group.ready() for group in groups)):
                return
            self._steps.popleft()
            for group in groups:
                STEPS.run("saving what an accelerator has computed", partial(group.write, held.sink))
            self._commit(held)

    def drop(self, aside: object = None) -> None:
        """Forget everything, and what ``exchange`` gave away."""
        if os.getpid() != self._process:
            # In a process that a fork has made, to free memory that its parent shares with an accelerator ends it.
            never_free((self._groups, self._steps, self._buffers, aside))
        self._groups, self._steps, self._buffers = [], deque(), {}
