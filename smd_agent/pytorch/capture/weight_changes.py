"""How far an optimizer moves each parameter in a step that is saved, and with which settings.

Of a large parameter a part is looked at, see ``framework.training_facts``; so little is copied and little computed.
Where an optimizer updates several times in a step, its first update is what is saved, as of the gradients.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent import session
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.parameter_roles import ParameterRoles
from smd_agent.framework.tracked_model import free_name
from smd_agent.pytorch.arrays import PLAIN_CLASSES

SETTINGS = ("lr", "weight_decay", "momentum", "betas", "eps")

_titles: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


class WeightChanges:
    """The updates of one step that is saved.

    Args:
        writer: takes the values.
        roles: of the parameters.
    """

    def __init__(self, writer: StepWriter, roles: ParameterRoles) -> None:
        self._writer = writer
        self._roles = roles
        due = writer.collections_due()
        self._wants_updates = CollectionKeys.UPDATES in due
        self._wants_settings = CollectionKeys.OPTIMIZER in due
        self._names: dict[int, list[str]] = {}
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._updated: set[int] = set()
        self._told: set[str] = set()

    def add_parameters(self, pairs: Sequence[tuple[str, torch.Tensor]], updating: Callable[[], bool]) -> None:
        """Save the updates of these too, under these names; a parameter may have several.

        Args:
            pairs: names and parameters.
            updating: tells whether an update is under way, as where a closure calls the model.
        """
        if not self._wants_updates:
            return
        for name, parameter in pairs:
            self._names.setdefault(id(parameter), []).append(name)
        if updating():
            self._remember(parameter for _, parameter in pairs)

    @session.fence("looking at weights before an update")
    def before_update(self, optimizer: Any) -> None:
        """Save an optimizer's settings, and remember its parameters."""
        self._save_settings(optimizer)
        if self._names:
            self._remember(_parameters(optimizer))

    @session.fence("looking at weights after an update")
    @torch.no_grad()
    def after_update(self, optimizer: Any) -> None:
        """Save how far the optimizer has moved its parameters."""
        self._save_settings(optimizer)
        alike: dict[tuple[torch.device, torch.dtype], list[_Moved]] = {}
        for parameter in _parameters(optimizer):
            known = self._before.pop(id(parameter), None)
            if known is None or known[0] is not parameter:
                continue
            before, after = known[1], _looked_at(parameter)
            if before.shape == after.shape:
                self._updated.add(id(parameter))
                moved = _Moved(self._names[id(parameter)], parameter.numel(), before, after)
                alike.setdefault((before.device, before.dtype), []).append(moved)
        for found in alike.values():
            self._save(found)

    def close(self) -> None:
        """Let go of what is remembered."""
        self._before.clear()

    def _save_settings(self, optimizer: Any) -> None:
        if not self._wants_settings:
            return
        title = title_of(optimizer)
        if title not in self._told:
            self._told.add(title)
            found = dict(facts.settings(optimizer.param_groups, SETTINGS))
            self._write([f"{facts.OPTIMIZER}{title}/{name}" for name in found], list(found.values()))

    @torch.no_grad()
    def _remember(self, parameters: Iterable[torch.Tensor]) -> None:
        for parameter in parameters:
            key = id(parameter)
            if key in self._names and key not in self._updated and _can_be_read(parameter):
                self._before[key] = parameter, _looked_at(parameter)

    def _save(self, found: list[_Moved]) -> None:
        lengths = _lengths([moved.before for moved in found])
        moves = _lengths(torch._foreach_sub([moved.after for moved in found], [moved.before for moved in found]))
        scales = torch.tensor([facts.scale_of(moved.size) for moved in found]).to(moves)
        ratios = torch.where(lengths == 0, (moves > 0).to(moves), moves / lengths)
        names: list[str] = []
        values: list[torch.Tensor] = []
        for moved, update, ratio in zip(found, (moves * scales).unbind(), ratios.unbind(), strict=True):
            for name in moved.names:
                names += (facts.UPDATE + name, facts.UPDATE_RATIO + name)
                values += (update, ratio)
        self._write(names, values)

    def _write(self, names: list[str], values: list[Any]) -> None:
        self._roles.keep_out(names)
        self._writer.save_tensors(names, values)


class _Moved(NamedTuple):
    """One parameter: its names, its number of elements, and those that were looked at."""

    names: list[str]
    size: int
    before: torch.Tensor
    after: torch.Tensor


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _can_be_read(parameter: torch.Tensor) -> bool:
    local = _local(parameter)
    return (
        type(local) in PLAIN_CLASSES
        and local.layout is torch.strided
        and local.is_floating_point()
        and not local.is_meta
        and not isinstance(parameter, UninitializedParameter)
        and local.untyped_storage().nbytes() > 0
    )


def _local(parameter: torch.Tensor) -> torch.Tensor:
    # Of a parameter that is distributed over ranks, this rank's part.
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


def _looked_at(parameter: torch.Tensor) -> torch.Tensor:
    """A copy of what is looked at of a parameter, in float32 or float64, contiguous."""
    local = _local(parameter.detach())
    part: torch.Tensor = facts.looked_at(local.reshape(-1))
    dtype = torch.float64 if part.dtype is torch.float64 else torch.float32
    return part.to(dtype, copy=True, memory_format=torch.contiguous_format)


def _lengths(tensors: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.stack(torch._foreach_norm(tensors, 2))


def title_of(optimizer: Any) -> str:
    """The name of an optimizer's class, with a number behind it if another one has it already."""
    title = _titles.get(optimizer)
    if title is None:
        taken = {*_titles.values()}
        title = _titles[optimizer] = free_name(type(optimizer).__name__, taken.__contains__)
    return title
