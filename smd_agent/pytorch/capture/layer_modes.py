"""Whether a model is called in training mode, with those of its layers that behave differently then.

``usage/model/<name>/training``    1 if the model itself is in training mode, else 0.
``usage/model/<name>/dropout``     the share of its dropout layers that are, of those that drop anything.
``usage/model/<name>/dropped``     the largest share of its input that one of those drops.
``usage/model/<name>/batch_norm``  the share of its normalisations with running statistics that are.

They are those of the step's first call, before it. A model without such layers has no number for them.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from smd_agent.core.domains import MODES
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.structure import held, is_training, own_dict, parts


class LayerModes:
    """The modes of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._told: set[str] = set()

    @MODES.fence("looking at the modes of layers")
    def before_call(self, name: str, model: torch.nn.Module | None) -> None:
        """A model is about to be called."""
        if not self._usage.wanted or name in self._told or model is None:
            return
        self._told.add(name)
        layers = parts(model)
        numbers = {"training": float(is_training(model))}
        dropping = [layer for layer in layers if _dropped(layer) > 0]
        numbers |= _share("dropout", [*map(is_training, dropping)])
        numbers |= {"dropped": max(map(_dropped, dropping))} if dropping else {}
        numbers |= _share("batch_norm", [is_training(layer) for layer in layers if _has_statistics(layer)])
        self._usage.save(f"model/{name}", numbers)


def _share(kind: str, modes: Iterable[bool]) -> dict[str, float]:
    found = [*modes]
    return {kind: sum(found) / len(found)} if found else {}


def _dropped(layer: torch.nn.Module) -> float:
    """Which share of its input a layer drops; 0 for one that is no dropout."""
    own = own_dict(layer)
    if is_a(layer, torch.nn.RNNBase):
        # Between its layers, so that of one there is none.
        return _number(own.get("dropout")) if _number(own.get("num_layers")) > 1 else 0.0
    if is_a(layer, torch.nn.MultiheadAttention):
        return _number(own.get("dropout"))
    return _number(own.get("p")) if is_a(layer, _DropoutNd) else 0.0


def _number(value: object) -> float:
    return float(value) if type(value) in (float, int) else 0.0  # type: ignore[arg-type]


def _has_statistics(layer: torch.nn.Module) -> bool:
    return is_a(layer, _NormBase) and any(name == "running_mean" for name, _ in held(layer, "_buffers"))
