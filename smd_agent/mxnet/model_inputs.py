"""Inputs of models of Gluon, and whether a block is given them as they are; see ``framework.model_inputs``.

Blocks inside of a hybridized one are not called with arrays; what they were given is known from when it was traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mxnet.gluon import Block, nn, rnn
from mxnet.gluon.nn.conv_layers import _Conv
from mxnet.gluon.rnn.rnn_layer import _RNNLayer

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.model_inputs import ModelInputs as AnyInputs
from smd_agent.framework.model_inputs import Numbers, is_integer, numbers_of, sample
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerReturn, ModelCall, StepEnd, on
from smd_agent.framework.training_facts import AS_IT_IS
from smd_agent.framework.usage import Usage
from smd_agent.mxnet.arrays import arrays_in, plain, to_array
from smd_agent.mxnet.hybridized import graph_of, is_active, trace_of

# Blocks that multiply what they are given by weights, and are made for numbers about 1.
_LAYERS = (nn.Dense, _Conv, _RNNLayer, rnn.RecurrentCell)
# They return the values that they are given.
_SAME = (nn.Flatten,)


class ModelInputs(AnyInputs, domain=INPUTS, doing="looking at the scales of a model's inputs"):
    """The inputs of models in one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, _numbers)
        # Of the model that runs: its block, the titles of its inputs and their numbers.
        self._model: int | None = None
        self._given: list[tuple[str, Numbers]] = []
        # Which input has the values of an array or a symbol. Arrays live on here while the model runs.
        self._origins: dict[object, str] = {}
        self._arrays: list[Any] = []

    def _save(self, call: ModelCall, found: list[tuple[str, Numbers]]) -> None:
        # When the model returns, it is known what its layers were given.
        if not found:
            return
        # What a call has left that has raised an error.
        self._forget()
        self._model, self._given = id(call.model), found
        arrays = arrays_in(call.inputs)
        for title, _ in found:
            self._note(arrays[int(title.rpartition("_")[2])], title)

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """A block of a model has returned."""
        _, block, inputs, outputs = call
        if self._model is None:
            return
        arrays = arrays_in(inputs)
        origins = [origin for array in arrays if (origin := self._origins.get(id(array)))]
        self._call(type(block), origins)
        if origins and is_a(block, _SAME):
            for array in arrays_in(outputs):
                self._note(array, origins[0])
        trace = trace_of(block) if is_active(block) else None
        if trace is not None and trace.graph is graph_of(block):
            names = [symbol.name for symbol in trace.graph[0]]
            known = {name: self._origins.get(id(array), "") for name, array in zip(names, arrays, strict=False)}
            for traced in trace.calls:
                symbols = [origin for symbol in traced.inputs if (origin := known.get(symbol.name))]
                self._call(traced.kind, symbols)
                if symbols and issubclass(traced.kind, _SAME):
                    known.update((symbol.name, symbols[0]) for symbol in traced.outputs)
        if self._model == id(block):
            given = self._given
            self._forget()
            super()._save(ModelCall("", block, inputs), given)

    def _note(self, array: Any, origin: str) -> None:
        self._arrays.append(array)
        self._origins[id(array)] = origin

    def _call(self, kind: type[Block], origins: Iterable[str]) -> None:
        """A block of this class was given the values of these inputs."""
        if issubclass(kind, _LAYERS):
            taken = {*origins}
            for title, numbers in self._given:
                numbers[AS_IT_IS] = max(float(title in taken), numbers.get(AS_IT_IS, 0.0))

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of everything."""
        self._forget()

    def _forget(self) -> None:
        self._model, self._given = None, []
        self._origins.clear()
        self._arrays.clear()


def _numbers(inputs: Any, most: int) -> Iterator[tuple[int, Numbers]]:
    for i, array in enumerate(map(plain, arrays_in(inputs)[:most])):
        if array.stype == "default" and array.size > 1:
            values, _ = to_array(array)
            if values.dtype.kind == "f" or is_integer(values.dtype):
                yield i, numbers_of(sample(values))
