"""Models inside of models: parts that hold all parameters of a model, so that calling one is calling the model.

Of what holds a net and its loss, all is trained and the net alone is evaluated. Where a program makes what is around
its net anew in each iteration, the net stands for the model that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from smd_agent.pytorch.model.wrappers import named_layers, unwrapped
from smd_agent.pytorch.plain_access import children, holds, parameter_ids


def inner_models(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
    """Such parts, the outermost first, each with its name in the model."""
    names = {id(layer): name for name, layer in named_layers(model)}
    outer = model
    while (inner := _covering_child(outer)) is not None:
        outer = unwrapped(inner)
        yield names.get(id(outer), ""), inner


def _covering_child(module: torch.nn.Module) -> torch.nn.Module | None:
    """The one child that holds all of the model's parameters, so that calling it is calling the model."""
    own = parameter_ids(module)
    if not own:
        return None
    for _, child in children(module):
        # What holds the model itself is no part of it that could stand for it.
        if parameter_ids(child) == own and not holds(child, module):
            return child
    return None
