"""Modes in which models are called: training or evaluation, with those of the layers that behave differently then.

``usage/model/<name>/training``    1 if the model itself is in training mode, else 0.
``usage/model/<name>/dropout``     the share of its dropout layers that are, of those that drop anything.
``usage/model/<name>/dropped``     the largest share of its input that one of those drops.
``usage/model/<name>/batch_norm``  the share of its normalisations with running statistics that are.

They are those of the step's first call. A model without such layers has no number for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from smd_agent.framework.usage import Usage, UsageProbe


class Modes(NamedTuple):
    """The modes of a model.

    training: whether it is in training mode.
    dropping: of each layer that drops a part of its input, whether it is in training mode and which share it drops.
    normalising: of each normalisation with running statistics, whether it is in training mode.
    """

    training: bool
    dropping: Sequence[tuple[bool, float]]
    normalising: Sequence[bool]


class LayerModes(UsageProbe):
    """The modes of one step that is saved; a framework gives them by model.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage)
        self._told: set[str] = set()

    def modes_of(self, model: Any) -> Modes:
        """Return the modes of a model."""
        raise NotImplementedError

    def save(self, name: str, model: Any) -> None:
        """Save the modes of a model, once a step."""
        if name in self._told:
            return
        self._told.add(name)
        training, dropping, normalising = self.modes_of(model)
        numbers = {"training": float(training), **_share("dropout", [mode for mode, _ in dropping])}
        numbers |= {"dropped": max(share for _, share in dropping)} if dropping else {}
        self._usage.save(f"model/{name}", {**numbers, **_share("batch_norm", normalising)}, here=True)


def _share(kind: str, modes: Iterable[bool]) -> dict[str, float]:
    found = [*modes]
    return {kind: sum(found) / len(found)} if found else {}
