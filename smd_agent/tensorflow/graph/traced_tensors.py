"""Register of the tensors that come up while TensorFlow traces a function, so that their values can be asked for later.

It holds names, not tensors: a tensor would keep its graph alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from smd_agent.core.channel_axes import ChannelAxes
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.loss_facts import CALLS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.weak_references import Reference, WeakIdentityMap
from smd_agent.tensorflow.graph.function_rewrite import Output, Tap, Unreachable, is_part, output_of
from smd_agent.tensorflow.graph.own_losses import OwnLoss

_LOOPS = ("WhileBodyFuncGraph", "WhileCondFuncGraph")
_BRANCH = "CondBranchFuncGraph"

INPUT = "input"
SETTING = "setting"
RESULT = "result"
SIDE = "side"
OF_A_LOSS = ("predictions", "labels", RESULT)


@dataclass(frozen=True)
class TensorPart:
    """The product of a tap: a tensor of the run, or one of the two parts of a gradient that has rows only.

    part: "" for a whole tensor, "values" or "indices"; INPUT for one of the tensors of which the run gets the digest,
        SETTING for what an optimizer has updated with, OF_A_LOSS for what a loss is given and returns, SIDE for what
        is as long as a side of a comparison.
    shape: of the whole, for "indices"; for INPUT, the tensor's number and how many there are; for SIDE, its number.
    """

    name: str
    part: str = ""
    shape: tuple[int, ...] = ()

    @property
    def fragile(self) -> bool:
        """True if XLA may round otherwise when this is returned: it fuses what layers compute into what uses it."""
        return self.part != RESULT and not self.name.startswith(("gradients/", "batch_loss"))


class TensorTaps:
    """The tensors of all functions that are alive.

    Attributes:
        axes: of the channels of what layers return.
        own_losses: that the program works out in steps, by what knows the variables of these, and by name; None of one
            that compares nothing.
        unreachable: names of tensors that came up where no tap leads, such as a loop.
    """

    def __init__(self) -> None:
        self._by_graph: WeakIdentityMap[Any, list[Tap]] = WeakIdentityMap()
        self._by_function: dict[str, list[Tap]] = {}
        self._losses: WeakIdentityMap[Any, dict[str, int]] = WeakIdentityMap()
        self.axes = ChannelAxes()
        self.own_losses: WeakIdentityMap[object, dict[str, OwnLoss | None]] = WeakIdentityMap()
        self.unreachable: set[str] = set()
        self._run: Callable[[], object] = bool

    def follow(self, run: object) -> None:
        """Forget what was out of reach in another run of this process."""
        if self._run() is not run:
            if self._run is not bool:
                self.unreachable.clear()
            self._run = Reference(run)

    def add(self, name: str, value: tf.Tensor | tf.IndexedSlices, shape: tuple[int, ...] = (), part: str = "") -> None:
        """A tensor of the run is this symbolic one.

        Args:
            name: in the run.
            value: the tensor.
            shape: that of a gradient's variable.
            part: see ``TensorPart``.
        """
        graph: Any = tf.compat.v1.get_default_graph()
        if type(graph).__name__ in _LOOPS:
            self.unreachable.add(name)
            return
        try:
            if is_a(value, tf.IndexedSlices):
                found = [
                    Tap(TensorPart(name, "values"), output_of(_inside(value.values, graph), graph)),
                    Tap(TensorPart(name, "indices", shape), output_of(_inside(value.indices, graph), graph)),
                ]
            else:
                found = [Tap(TensorPart(name, part, shape if part else ()), output_of(_inside(value, graph), graph))]
        except Unreachable:
            self.unreachable.add(name)
            return
        known = self._by_graph.get(graph) or self._by_graph.set(graph, [])
        known.extend(found)
        if type(graph).__name__ == _BRANCH:
            # The function made of it is called like it, and is not announced.
            self._by_function[graph.name] = known

    def add_inputs(self, base: str, tensors: Sequence[tf.Tensor]) -> None:
        """A model is called with these; the digest of its n-th call under a graph is called ``<base>_<n>``."""
        number, graph = 0, tf.compat.v1.get_default_graph()
        while self.has(f"{base}_{number}", graph):
            number += 1
        for i, tensor in enumerate(tensors):
            self.add(f"{base}_{number}", tensor, (i, len(tensors)), INPUT)

    def add_setting(self, name: str, value: tf.Tensor) -> None:
        """An optimizer updates with this; of several updates under a graph, the first one's counts."""
        if not self.has(name, tf.compat.v1.get_default_graph()):
            self.add(name, value, (), SETTING)

    def add_loss(self, base: str, given: Mapping[str, Any]) -> str | None:
        """A loss is given these tensors; returns the name of the n-th call under a graph, ``<base>_<n>``.

        Args:
            base: the name without the number.
            given: tensors by what they are, of OF_A_LOSS.
        """
        graph = tf.compat.v1.get_default_graph()
        calls = self._losses.get(graph) or self._losses.set(graph, {})
        number = calls.get(base, 0)
        calls[base] = number + 1
        if number >= CALLS:
            return None
        for part, tensor in given.items():
            self.add(f"{base}_{number}", tensor, (), part)
        return f"{base}_{number}"

    def add_side(self, name: str, number: int, output: Output) -> None:
        """A loss of this name compares what is as long as this, of the function that is traced; see ``own_losses``."""
        graph: Any = tf.compat.v1.get_default_graph()
        known = self._by_graph.get(graph) or self._by_graph.set(graph, [])
        known.append(Tap(TensorPart(name, SIDE, (number,)), output))

    def has(self, name: str, graph: tf.Graph) -> bool:
        """True if a tensor of just this name has come up in a graph."""
        return any(tap.key.name == name for tap in self._by_graph.get(graph) or ())

    def bind(self, graph: tf.Graph, function: str) -> None:
        """Know what has come up in a graph by the name of the function that was made of it."""
        taps = self._by_graph.get(graph)
        if taps:
            self._by_function[function] = taps

    def of(self, function: str) -> list[Tap]:
        """The taps that have come up in a function."""
        return self._by_function.get(function, [])


def _inside(value: tf.Tensor, graph: tf.Graph) -> Any:
    """The tensor of this function that stands for one of an outer function, once this one has used it."""
    if not is_part(value, graph):
        for outside, inside in attribute(graph, "captures", ()):
            if outside is value:
                return inside
    return value
