"""Parameters that a model holds in plain lists or dicts, so that neither it nor an optimizer knows of them.

They are told of in the facts of the model's parameters, with ``"registered": false``: those that can be differentiated,
are of a module in training mode, were given to no optimizer, belong to no other model, and have not changed since a
saved step before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.plain_access import is_a
from smd_agent.framework.training_facts import sample
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.model.plain_lists import unregistered_parameters
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.plain_access import is_training

Value = tuple[int, float]


class _Held(NamedTuple):
    """One of them; weakly, as the program may let go of it.

    name: what it would be saved under.
    parameter, module: it, and what has it.
    """

    name: str
    parameter: weakref.ref[torch.nn.Parameter]
    module: weakref.ref[torch.nn.Module]


class _Known:
    """The knowledge of one model: how often it was asked for, what it holds, and what values that had at first."""

    def __init__(self) -> None:
        self.times = 0
        self.held: list[_Held] = []
        self.first: dict[str, tuple[weakref.ref[torch.nn.Parameter], Value]] = {}


_known: WeakIdentityMap[torch.nn.Module, _Known] = WeakIdentityMap()


def left_untrained(tracked: TrackedModule, owned: Callable[[], set[int]]) -> list[tuple[str, torch.nn.Parameter]]:
    """Those of a model by name, at a step that is saved.

    Args:
        tracked: the model.
        owned: gives the ids of the parameters of all models that are known.
    """
    model = tracked.model
    if model is None:
        return []
    known = _known.get(model) or _known.set(model, _Known())
    known.times += 1
    # Modules are looked through at the first saved steps, and ever more seldom.
    if not known.times & (known.times - 1):
        known.held = [
            _Held(tracked.name_of(name), weakref.ref(parameter), weakref.ref(module))
            for name, parameter, module in unregistered_parameters(model)
        ]
    return [*_unchanged(known, owned())] if known.held else []


def _unchanged(known: _Known, owned: set[int]) -> Iterator[tuple[str, torch.nn.Parameter]]:
    for name, reference, holder in known.held:
        parameter, module = reference(), holder()
        if (
            parameter is None
            or module is None
            or not (is_training(module) and parameter.requires_grad and parameter.is_leaf)
            or id(parameter) in owned
            or was_given(parameter)
            or is_a(parameter, UninitializedParameter)
            or not has_memory(parameter)
        ):
            continue
        value = _value_of(parameter)
        first = known.first.get(name)
        if first is None or first[0]() is not parameter:
            known.first[name] = reference, value
        elif first[1] == value:
            yield name, parameter


@without_gradients
def _value_of(parameter: torch.nn.Parameter) -> Value:
    numbers = sample(parameter.detach().reshape(-1))
    return parameter._version, float(numbers.sum(dtype=torch.float64))
