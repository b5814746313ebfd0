"""Inputs of models of PyTorch, and whether a layer is given them as they are; see ``framework.model_inputs``."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.nn.modules.conv import _ConvNd

from smd_agent.core.domains import INPUTS
from smd_agent.framework.model_inputs import ModelInputs as AnyInputs
from smd_agent.framework.model_inputs import Numbers, is_table, looked_at, numbers_of
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.training_facts import AS_IT_IS
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, tensors_in, to_array
from smd_agent.pytorch.tracing import without_gradients

# Layers that multiply what they are given by weights, and are made for numbers about 1.
_LAYERS = (torch.nn.Linear, _ConvNd, torch.nn.RNNBase, torch.nn.RNNCellBase, torch.nn.Bilinear)
# Calls of them that are looked at, of which one of the first gets the input.
_CALLS = 32
# What a bilinear layer is given.
_INPUTS = 2


class _Given(NamedTuple):
    """An input of a model that is running: how it is called, its numbers, and what tells it from others."""

    title: str
    numbers: Numbers
    tensor: weakref.ref[torch.Tensor]
    storage: int
    version: int


class ModelInputs:
    """The inputs of models in one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._inputs = AnyInputs(usage, numbers_of_inputs)
        self._given: dict[str, list[_Given]] = {}
        self._calls = 0

    @INPUTS.fence("looking at the scales of a model's inputs")
    def before_call(self, name: str, inputs: Any) -> None:
        """A model is about to be called."""
        found = self._inputs.of_first_call(name, inputs)
        if not found:
            return
        tensors = tensors_in(inputs)
        self._given[name] = [
            _Given(title, numbers, *_identity(tensors[int(title.rpartition("_")[2])])) for title, numbers in found
        ]

    @INPUTS.fence("looking at what a layer is given")
    def before_layer(self, layer: torch.nn.Module, inputs: Any) -> None:
        """A layer is about to be called, in a model."""
        if not self._given or not is_a(layer, _LAYERS) or self._calls == _CALLS:
            return
        self._calls += 1
        known = {_identity(tensor)[1:] for tensor in tensors_in(inputs)[:_INPUTS] if has_memory(tensor)}
        for given in self._given.values():
            for one in given:
                taken = (one.storage, one.version) in known and one.tensor() is not None
                one.numbers[AS_IT_IS] = max(float(taken), one.numbers.get(AS_IT_IS, 0.0))

    @INPUTS.fence("saving the scales of a model's inputs")
    def after_call(self, name: str) -> None:
        """A model has returned."""
        for one in self._given.pop(name, ()):
            self._usage.save(one.title, one.numbers)

    def close(self) -> None:
        """Let go of everything."""
        self._given.clear()


def looks_at(layer: torch.nn.Module) -> bool:
    """Whether a layer may be given a model's inputs."""
    return is_a(layer, _LAYERS)


def _identity(tensor: torch.Tensor) -> tuple[weakref.ref[torch.Tensor], int, int]:
    version = 0 if tensor.is_inference() else tensor._version
    return weakref.ref(tensor), tensor.untyped_storage().data_ptr(), version


def numbers_of_inputs(inputs: Any, most: int) -> Iterator[tuple[int, Numbers]]:
    """The numbers of each of the first inputs that has floats and can be read, by its place among the tensors."""
    for i, tensor in enumerate(tensors_in(inputs)[:most]):
        if tensor.is_floating_point() and tensor.numel() > 1 and has_memory(tensor):
            yield i, _numbers_of(tensor.detach())


@without_gradients
def _numbers_of(tensor: torch.Tensor) -> Numbers:
    shape = tuple(tensor.shape)
    part = looked_at(tensor)
    if part.is_cpu:
        # NumPy takes a third of the time.
        found = to_array(part)
        return {} if found is None else numbers_of(found[0], shape)
    if part.dtype is not torch.float64:
        part = part.float()
    low, high = part.aminmax()
    std, mean = torch.std_mean(part, unbiased=False)
    numbers: Numbers = {"min": low, "max": high, "mean": mean, "std": std}
    numbers["not_finite"] = 1 - part.isfinite().float().mean()
    if is_table(shape):
        scales = torch.linalg.vector_norm(part, dim=0) / math.sqrt(part.shape[0])
        numbers["largest_scale"], numbers["largest_column"] = scales.max(0)
        numbers["smallest_scale"], numbers["smallest_column"] = scales.masked_fill(scales == 0, math.inf).min(0)
    return numbers
