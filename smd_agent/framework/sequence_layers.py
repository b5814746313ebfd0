"""Inputs of recurrent layers and attention: which axis they run over, and whether they see what comes later.

``usage/layer/<name>/<fact>``, of the step's first calls of such layers that are trained:

``axis_0``, ``axis_1``  sizes of the first two axes of the input, of a layer without the batch first: time and batch.
``batch``               size of the first axis of what the model is called with.
``length``              how many elements the sequence has that an attention to itself looks at.
``masked``              1 if it is given a mask that hides something or is told to be causal, else 0; padding is no such
                        mask.
``mask_min``, ``mask_max``  the smallest and the largest number of a mask that is added to the scores.
``decodes``             1 where it is a decoder's attention to what has been decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.step_events import LayerCall, ModelCall, on
from smd_agent.framework.usage import Usage, UsageProbe

# Of a deep model the first ones tell as much as all.
_MOST = 8
DIMENSIONS = 3
"""Those of a sequence: with a batch, and features last."""


class Given(NamedTuple):
    """The sequences that a layer is given.

    shape: of three axes.
    batch_first: whether the first of them is that of the batch; else the second one is.
    attention: of an attention to itself, further facts, of which ``masked`` is one.
    """

    shape: Sequence[int]
    batch_first: bool
    attention: Mapping[str, Any] = MappingProxyType({})


class SequenceLayers(UsageProbe, domain=INPUTS, doing="looking at layers over sequences"):
    """The layers of one step that is saved; a framework tells what they are given.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._told: set[str] = set()
        self._batch: int | None = None

    def given_to(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given | None:
        """Return what a layer is given; None if it is no such layer, or is given something else."""
        raise NotImplementedError

    def batch_of(self, inputs: Any) -> int | None:
        """Return the size of the first axis of a model's inputs that have several axes."""
        raise NotImplementedError

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called, which may be such a layer itself."""
        self._batch = self.batch_of(call.inputs)
        self._look_at(call.name, call.model, *call.inputs)

    @on(LayerCall)
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called."""
        self._look_at(*call)

    def _look_at(self, name: str, layer: Any, args: Any, kwargs: Any) -> None:
        if name in self._told or len(self._told) == _MOST:
            return
        given = self.given_to(layer, args, kwargs)
        if given is None:
            return
        self._told.add(name)
        numbers: dict[str, Any] = {}
        if not given.batch_first and self._batch is not None:
            numbers |= {"axis_0": given.shape[0], "axis_1": given.shape[1], "batch": self._batch}
        if given.attention:
            numbers |= {"length": given.shape[1 if given.batch_first else 0], **given.attention}
        self._usage.save(f"layer/{name}", numbers, here=True)
