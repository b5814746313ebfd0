"""Trainings that call their model twice: without gradients first, and again once it is known what its outputs get.

The loss is computed of all that the model has returned for many parts of a batch, and differentiated by that alone
(GradCache). Then each part is called again, and gets its share. The first backward pass of such a program ends at
tensors that are no parameters and that no optimizer has, after calls of a trained model in training mode.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from typing import Any

import torch

from smd_agent.pytorch import plain_access
from smd_agent.pytorch.discovery.backward_calls import leaves
from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.model.wrappers import unwrapped

Module = torch.nn.Module


class CachedPasses:
    """The calls without gradients that there have been before the first of these passes."""

    def __init__(self) -> None:
        self._called: dict[int, weakref.ref[Module]] = {}

    def called(self, module: Module, trained: Collection[int]) -> None:
        """A module is called without gradients; ``trained`` has the ids of parameters whose model is not known."""
        if id(module) in self._called or not plain_access.is_training(unwrapped(module)):
            return
        if not plain_access.parameter_ids(module).isdisjoint(trained):
            self._called[id(module)] = weakref.ref(module)

    def models_behind(self, tensors: Any) -> list[Module]:
        """The models whose outputs a backward pass from these tensors ends at; none if it ends at parameters."""
        called, self._called = [one() for one in self._called.values()], {}
        ends = leaves(tensors) if called else []
        if not ends or any(plain_access.is_parameter(one) or was_given(one) for one in ends):
            return []
        return [module for module in called if module is not None]
