"""Inputs of models of PyTorch, and whether a layer is given them as they are; see ``framework.model_inputs``."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.modules.conv import _ConvNd

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.model_inputs import ModelInputs as AnyInputs
from smd_agent.framework.model_inputs import Numbers, is_table, numbers_of, numbers_of_any, sample
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import LayerCall, ModelCall, ModelReturn, StepEnd, on
from smd_agent.framework.training_facts import AS_IT_IS, INTEGERS
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, tensors_in, to_array
from smd_agent.pytorch.own_operations import without_gradients

# Layers that multiply what they are given by weights, and are made for numbers about 1.
_LAYERS = (torch.nn.Linear, _ConvNd, torch.nn.RNNBase, torch.nn.RNNCellBase, torch.nn.Bilinear)
# Calls of them that are looked at, of which one of the first gets the input.
_CALLS = 32
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# What a bilinear layer is given.
_INPUTS = 2


class _Given(NamedTuple):
    """An input of a model that is running: how it is called, its numbers, and what tells it from others."""

    title: str
    numbers: Numbers
    tensor: weakref.ref[torch.Tensor]
    storage: int
    version: int


class ModelInputs(AnyInputs, domain=INPUTS, doing="looking at the scales of a model's inputs"):
    """The inputs of models in one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, numbers_of_inputs)
        self._given: dict[str, list[_Given]] = {}
        self._calls = 0

    def _save(self, call: ModelCall, found: list[tuple[str, Numbers]]) -> None:
        # When the model returns, it is known what its layers were given.
        tensors = tensors_in(call.inputs)
        self._given[call.name] = [
            _Given(title, numbers, *_identity(tensors[int(title.rpartition("_")[2])])) for title, numbers in found
        ]

    @on(ModelCall)
    def before_model(self, call: ModelCall) -> None:
        """A model is about to be called, which may be such a layer itself."""
        self.before_call(call)
        self._look_at(call.model, call.inputs)

    @on(LayerCall)
    def before_layer(self, call: LayerCall) -> None:
        """A layer is about to be called, in a model."""
        self._look_at(call.layer, (call.args, call.kwargs))

    def _look_at(self, layer: Any, inputs: Any) -> None:
        if not self._given or not is_a(layer, _LAYERS) or self._calls == _CALLS:
            return
        self._calls += 1
        known = {_identity(tensor)[1:] for tensor in tensors_in(inputs)[:_INPUTS] if has_memory(tensor)}
        for given in self._given.values():
            for one in given:
                taken = (one.storage, one.version) in known and one.tensor() is not None
                one.numbers[AS_IT_IS] = max(float(taken), one.numbers.get(AS_IT_IS, 0.0))

    @on(ModelReturn)
    def after_call(self, call: ModelReturn) -> None:
        """A model has returned."""
        for one in self._given.pop(call.name or "", ()):
            self._usage.save(one.title, one.numbers, here=True)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of everything."""
        self._given.clear()

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if a layer may be given a model's inputs."""
        return self.wanted and is_a(layer, _LAYERS)


def _identity(tensor: torch.Tensor) -> tuple[weakref.ref[torch.Tensor], int, int]:
    version = 0 if tensor.is_inference() else tensor._version
    return weakref.ref(tensor), tensor.untyped_storage().data_ptr(), version


def numbers_of_inputs(inputs: Any, most: int) -> Iterator[tuple[int, Numbers]]:
    """The numbers of each of the first inputs that has numbers and can be read, by its place among the tensors."""
    for i, tensor in enumerate(tensors_in(inputs)[:most]):
        if _has_numbers(tensor) and tensor.numel() > 1 and has_memory(tensor):
            yield i, _numbers_of(tensor.detach())


def _has_numbers(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.dtype in _INTEGERS


@without_gradients
def _numbers_of(tensor: torch.Tensor) -> Numbers:
    looked = sample(tensor)
    if tensor.is_cpu:
        # NumPy takes a third of the time.
        arrays = looked.converted(_array)
        return {} if arrays.elements is None else numbers_of(arrays)
    is_whole = not tensor.is_floating_point()
    looked = looked.converted(_as_floats)
    part = looked.elements
    std, mean = torch.std_mean(part, unbiased=False)
    numbers = {**numbers_of_any(looked), "mean": mean, "std": std}
    numbers["not_finite"] = 1 - part.isfinite().float().mean()
    if is_table(looked.shape):
        scales = torch.linalg.vector_norm(part, dim=0) / math.sqrt(part.shape[0])
        numbers["largest_scale"], numbers["largest_column"] = scales.max(0)
        numbers["smallest_scale"], numbers["smallest_column"] = scales.masked_fill(scales == 0, math.inf).min(0)
    return {**numbers, INTEGERS: 1.0} if is_whole else numbers


def _array(part: torch.Tensor) -> Any:
    found = to_array(part)
    return None if found is None else found[0]


def _as_floats(part: torch.Tensor) -> torch.Tensor:
    return part if part.dtype is torch.float64 else part.float()
