"""Columns of the table of parameters: two for each parameter of the models, by the name under which it is saved."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable

import torch

from smd_agent.pytorch.model.tracked_module import TrackedModule

GRADIENT, UPDATE = "series/gradient_l2", "series/update_l2"


class NamedParameters:
    """The parameters, each of which keeps its columns; those of parameters that come later come behind them.

    Args:
        models: gives those that are known.

    Attributes:
        columns: their names: of each parameter its gradient, then its update.
    """

    def __init__(self, models: Callable[[], Iterable[TrackedModule]]) -> None:
        self._models = models
        self.columns: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}
        # By id: the parameter, and its number; -1 if it is an optimizer's, and no model's.
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def numbers_of(self, parameters: list[torch.Tensor]) -> list[int]:
        """The numbers of parameters, of which each has the columns 2n and 2n+1; -1 of one that no model has."""
        if not all(map(self._is_known, parameters)):
            self._look()
            for parameter in parameters:
                if not self._is_known(parameter):
                    self._known[id(parameter)] = weakref.ref(parameter), -1
        return [self._known[id(parameter)][1] for parameter in parameters]

    def _is_known(self, parameter: torch.Tensor) -> bool:
        known = self._known.get(id(parameter))
        return known is not None and known[0]() is parameter

    def _look(self) -> None:
        self._known = {}
        for tracked in self._models():
            for name, parameter in tracked.parameters():
                if not self._is_known(parameter):
                    number = self._numbers.setdefault(name, len(self._numbers))
                    self._known[id(parameter)] = weakref.ref(parameter), number
        self.columns = tuple(f"{kind}/{name}" for name in self._numbers for kind in (GRADIENT, UPDATE))
