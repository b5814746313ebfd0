"""Models that ``fully_shard`` has divided among ranks: this rank's part of their parameters.

While such a model runs, and after an evaluation until the next backward pass, plain tensors stand in the place of some
parameters. The optimizer, and so the gradients, belong to the sharded ones, which only the wrapper's own state tells;
where a torch version keeps that elsewhere, what stands in the module is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def stand_ins(module: torch.nn.Module) -> dict[int, torch.nn.Parameter]:
    """The sharded parameters, by the ids of the whole ones that stand in their place for a while."""
    found: dict[int, torch.nn.Parameter] = {}
    for part in module.modules():
        state_of = getattr(part, "_get_fsdp_state", None)
        if state_of is not None:
            found.update(_stand_ins(state_of()))
    return found


def _stand_ins(state: Any) -> Iterator[tuple[int, Any]]:
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    for group in groups:
        for parameter in getattr(group, "fsdp_params", ()):
            whole = getattr(parameter, "_unsharded_param", None)
            sharded = getattr(parameter, "sharded_param", None)
            if whole is not None and sharded is not None:
                yield id(whole), sharded
