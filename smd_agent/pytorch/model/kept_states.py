"""States that a program keeps, to load them again: whether they have changed with the model since it took them.

The tensors that ``state_dict`` returns are the model's own memory. An optimizer that goes on changes them too, and to
load them then changes nothing. Of some small parameters it is kept what they were when a state was taken, for as long
as the program keeps the state, in whatever dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import torch

from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.framework.plain_access import pairs_of
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.arrays import PLAIN_CLASSES, has_memory
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import parameters
from smd_agent.pytorch.tracing import is_opaque

_MOST = 4
_LARGEST = 1 << 14


class Updates(Protocol):
    """Knows the updates of optimizers."""

    @property
    def step(self) -> int:
        """The number of the training step that is under way, or was the last one."""

    def have_changed(self, parameter: torch.Tensor) -> bool:
        """True if an optimizer that has this parameter has updated."""


class _Taken(NamedTuple):
    """A tensor of a state, as it was when that was taken.

    values: a copy.
    step: of the training then.
    """

    values: torch.Tensor
    step: int


class KeptStates:
    """Those of the process."""

    def __init__(self) -> None:
        self._taken: WeakIdentityMap[torch.Tensor, _Taken] = WeakIdentityMap()
        self._updates: Updates | None = None

    def follow(self, updates: Updates) -> None:
        """Ask these from now on."""
        self._updates = updates

    @fence("looking at a state that is taken", PARAMETERS)
    def taken(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], state: Any) -> None:
        """Take note of a call of ``state_dict``.

        Args:
            module: whose it is.
            args, kwargs: its other arguments.
            state: what it has returned.
        """
        # Parts of a module add to the state of the whole.
        if args or kwargs.get("destination") is not None or is_opaque():
            return
        own = {parameter.data_ptr() for parameter in _small(module)}
        of_own = [one for _, one in pairs_of(state) if _is_plain(one) and one.data_ptr() in own]
        for tensor in of_own[-_MOST:]:
            self._taken.set(tensor, _Taken(tensor.detach().clone(), self._step))

    def changed(self, module: torch.nn.Module, state: Any) -> bool:
        """True if a state is a module's own memory, and an optimizer of its has changed it since it was taken.

        Args:
            module: that has loaded it.
            state: by name.
        """
        if is_opaque():
            return False
        kept = [(one, taken) for _, one in pairs_of(state) if (taken := self._taken.get(one)) is not None]
        if not kept:
            return False
        own = {parameter.data_ptr(): parameter for parameter in _small(module)}
        return any(self._has_changed(own.get(tensor.data_ptr()), tensor, taken) for tensor, taken in kept)

    @property
    def _step(self) -> int:
        return -1 if self._updates is None else self._updates.step

    def _has_changed(self, own: torch.Tensor | None, tensor: torch.Tensor, taken: _Taken) -> bool:
        if own is None or self._updates is None or self._step == taken.step:
            return False
        # Else the program itself may have computed in this memory, as means of several models are made.
        is_trained = self._updates.have_changed(own)
        same_kind = tensor.device == taken.values.device and tensor.dtype == taken.values.dtype
        return is_trained and same_kind and not torch.equal(tensor, taken.values)


kept_states = KeptStates()


def _small(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    for parameter in parameters(module):
        if (
            _is_plain(parameter)
            and parameter.requires_grad
            and parameter.numel() * parameter.element_size() <= _LARGEST
        ):
            yield parameter


def _is_plain(tensor: Any) -> bool:
    return type(tensor) in PLAIN_CLASSES and has_memory(tensor) and tensor.numel() > 0
