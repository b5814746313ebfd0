"""Models that ``fully_shard`` has divided among ranks: what they are called, and this rank's part of their parameters.

While such a model runs, and after an evaluation until the next backward pass, plain tensors stand in the place of some
parameters. The optimizer, and so the gradients, belong to the sharded ones, which only the wrapper's own state tells;
where a torch version keeps that elsewhere, what stands in the module is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

_MIXED_IN = "FSDPModule"


def class_name(module: torch.nn.Module) -> str:
    """The name of the class that the program gave the model; ``fully_shard`` puts one of its own before it."""
    classes = type(module).__mro__
    own = next((i + 1 for i, found in enumerate(classes) if found.__name__ == _MIXED_IN), 0)
    return classes[own].__name__


def named_parameters(module: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Parameter]]:
    """The parameters by name, the sharded ones where whole ones stand in their place for a while."""
    stand_ins: dict[int, Any] = {}
    for part in module.modules():
        state_of = getattr(part, "_get_fsdp_state", None)
        if state_of is not None:
            stand_ins.update(_stand_ins(state_of()))
    for name, parameter in module.named_parameters():
        yield name, stand_ins.get(id(parameter), parameter)


def _stand_ins(state: Any) -> Iterator[tuple[int, Any]]:
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    for group in groups:
        for parameter in getattr(group, "fsdp_params", ()):
            whole = getattr(parameter, "_unsharded_param", None)
            sharded = getattr(parameter, "sharded_param", None)
            if whole is not None and sharded is not None:
                yield id(whole), sharded
