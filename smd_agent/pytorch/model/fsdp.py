"""Models that ``fully_shard`` has divided among ranks: this rank's part of their parameters.

While such a model runs, and after an evaluation until the next backward pass, plain tensors stand in the place of some
parameters. The optimizer, and so the gradients, belong to the sharded ones, which only the wrapper's own state tells;
where a torch version keeps that elsewhere, what stands in the module is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from smd_agent.framework.plain_access import in_class
from smd_agent.pytorch.plain_access import parts


def stand_ins(module: torch.nn.Module) -> dict[int, torch.nn.Parameter]:
    """The sharded parameters, by the ids of the whole ones that stand in their place for a while."""
    found: dict[int, torch.nn.Parameter] = {}
    for part in parts(module):
        state_of = in_class(type(part), "_get_fsdp_state")
        # The method is PyTorch's, of a class that it has put before the program's own.
        if type(state_of) is FunctionType and state_of.__module__.startswith("torch."):
            found.update(_stand_ins(state_of(part)))
    return found


def _stand_ins(state: Any) -> Iterator[tuple[int, Any]]:
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    for group in groups:
        for parameter in getattr(group, "fsdp_params", ()):
            whole = getattr(parameter, "_unsharded_param", None)
            sharded = getattr(parameter, "sharded_param", None)
            if whole is not None and sharded is not None:
                yield id(whole), sharded
