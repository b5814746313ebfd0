"""The part of the PyTorch hook that is for accelerators: values that are asked for now and written when they are in.

The steps of a run on the CPU, whose values are all there at once, go straight to the disk.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from smd_agent.core.ports import HeldStep, StepSink
from smd_agent.core.recorder import Recorder
from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.capture.gradients import Gradient
from smd_agent.pytorch.device.pending_steps import Arrivals, comes_later, on_device
from smd_agent.pytorch.own_operations import apart


def may_come_later(value: Any) -> bool:
    """True if a value is a tensor on an accelerator, or the gradient of one; it is not computed."""
    tensor = value.value if type(value) is Gradient else value
    return type(tensor) in PLAIN_CLASSES and on_device(tensor)


def _tensor_of(value: Any) -> torch.Tensor:
    tensor: torch.Tensor = value.read() if type(value) is Gradient else value
    return tensor


class LateValues:
    """The steps of a hook whose values come later.

    Args:
        recorder: of the hook.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._arrivals = Arrivals(recorder.commit, recorder.axes)

    @property
    def waiting(self) -> bool:
        """True if a step that has ended is not on its way to the disk."""
        return self._arrivals.waiting

    @apart
    def ask(self, names: Sequence[str], values: Sequence[Any]) -> tuple[Sequence[str], Sequence[Any]]:
        """Ask for what can come later; the other names and values are returned."""
        if not any(map(may_come_later, values)):
            return names, values
        group = self._recorder.group(tuple(names))
        found = {i: _tensor_of(values[i]) for i in group.wanted if may_come_later(values[i])}
        group = group.for_sizes(lambda i: found[i].numel() if i in found else sys.maxsize)
        devices: dict[torch.device, dict[int, torch.Tensor]] = {}
        for i, tensor in found.items():
            if comes_later(tensor, i, group):
                devices.setdefault(tensor.device, {})[i] = tensor
        for tensors in devices.values():
            late = tuple(names[i] for i in tensors)
            self._arrivals.ask(late, list(tensors.values()), self._recorder.group(late))
        asked = {i for tensors in devices.values() for i in tensors}
        rest = [i for i in range(len(names)) if i not in asked]
        return [names[i] for i in rest], [values[i] for i in rest]

    @apart
    def end(self, held: HeldStep) -> None:
        """Take a step that has ended; it is handed over once all its values, and those of earlier steps, are in."""
        self._arrivals.end(held)

    @apart
    def bring(self, sink: StepSink) -> None:
        """Wait for what was asked for in the open step, and write it into that."""
        self._arrivals.bring(sink)

    def forget(self, names: set[str]) -> None:
        """Have tensors and scalars of these names, asked for in the open step, not saved: others follow."""
        self._arrivals.forget(names)

    def put_aside(self) -> object:
        """Give away what was asked for in the open step, which goes on later."""
        return self._arrivals.exchange([])

    def go_on(self, asked: Any) -> None:
        """Take back what ``put_aside`` gave away: the step goes on."""
        self._arrivals.exchange(asked)

    @apart
    def settle(self, wait: bool = False) -> None:
        """Hand over the steps whose values are in; if asked to, wait for all."""
        self._arrivals.settle(wait)

    def drop(self, aside: object = None) -> None:
        """Forget everything, and what ``put_aside`` gave away."""
        self._arrivals.drop(aside)
