"""A forward that runs again, without the program noticing: its tensors, its random numbers, its casts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from smd_agent.framework.plain_access import is_a
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.plain_access import own_dict, parameters, parts

_OWN_OPERATIONS = {"aten", "prims", "prim"}


class Refused(Exception):
    """The forward does something that could be noticed."""


class OwnTensorsOnly(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets through torch's own operations that write to nothing but what was made while this is active."""

    def __init__(self, own: Iterator[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = {_storage(tensor) for tensor in own}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.let_through(func, args, kwargs or {})

    def let_through(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operation, if it may be computed.

        Raises:
            Refused: it may not.
        """
        if func.namespace not in _OWN_OPERATIONS:
            raise Refused(f"it calls {func}")
        if func._schema.is_mutable and any(_storage(t) not in self._own for t in _written(func, args, kwargs)):
            raise Refused(f"{func} changes a tensor")
        result = func(*args, **kwargs)
        given = {_storage(tensor) for tensor in tensors_in((args, kwargs))}
        self._own.update({_storage(tensor) for tensor in tensors_in(result)} - given)
        return result


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            yield from tensors_in(value)


def _storage(tensor: torch.Tensor) -> int:
    number: int = tensor.untyped_storage()._cdata
    return number


def tensors_held_by(module: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, torch.Tensor]]:
    """The tensors that a forward may overwrite: buffers, and attributes of modules; not parameters."""
    for part in parts(module):
        own = own_dict(part)
        for owner in (own.get("_buffers", {}), own):
            for key, value in owner.items():
                if is_a(value, torch.Tensor):
                    yield owner, key, value


@contextmanager
def holding(state: list[tuple[dict[str, Any], str, torch.Tensor]]) -> Iterator[None]:
    """Put these tensors in the place of those that the module holds."""
    kept = [owner[key] for owner, key, _ in state]
    for owner, key, value in state:
        owner[key] = value
    try:
        yield
    finally:
        for (owner, key, _), value in zip(state, kept, strict=True):
            owner[key] = value


def random_state(module: torch.nn.Module) -> tuple[torch.Tensor, dict[torch.device, torch.Tensor]]:
    """The state of the generator of the host, and of those of the accelerators that a model is on."""
    devices = {p.device for p in parameters(module) if p.device.type == "cuda"}
    return torch.get_rng_state(), {device: torch.cuda.get_rng_state(device) for device in devices}


@contextmanager
def with_random(state: tuple[torch.Tensor, dict[torch.device, torch.Tensor]]) -> Iterator[None]:
    """Draw random numbers from these states; afterwards all generators are as they were."""
    with torch.random.fork_rng(devices=list(state[1])):
        torch.set_rng_state(state[0])
        for device, value in state[1].items():
            torch.cuda.set_rng_state(value, device)
        yield


@contextmanager
def without_autocast_cache() -> Iterator[None]:
    """Weights cast here, without gradients, must not be found by what the program runs next."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)
