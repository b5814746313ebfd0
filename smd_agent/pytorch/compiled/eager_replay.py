"""The layers of compiled code, seen by running the model a second time without the compiler.

Compiled code cannot be watched without being compiled anew. So in a step that is saved, and only when inputs or outputs
of layers are asked for, the compiled call runs as always; then the same forward runs eagerly with its layers watched,
on copies of its buffers, with the random numbers that the call began with, without gradients. What it shows is saved if
its result is that of the compiled call within rounding.

Nobody can tell that it ran: only code that does nothing but run a graph is run again (see ``pure``), and an operation
that would write to a tensor the replay has not made, or that is not one of torch's own, ends it before it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from smd_agent import guard
from smd_agent.framework import replaced_functions
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.compiled.dynamo_bytecode import runs_only_a_graph
from smd_agent.pytorch.model.watched_calls import WatchedCalls
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.plain_access import own_dict, parts
from smd_agent.pytorch.unnoticed import (
    OwnTensorsOnly,
    holding,
    random_state,
    tensors_held_by,
    with_random,
    without_autocast_cache,
)

Seen = list[tuple[str, str, list[torch.Tensor]]]

# Of the largest value of an output.
_ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.05, torch.float16: 0.02}


class EagerReplay:
    """One call of a compiled module, made before it and run after it.

    Args:
        module: the module that was compiled, as it is without the compiler.
        layers: the layers to watch, with their names.
        args, kwargs: what it is called with.
    """

    def __init__(
        self, module: torch.nn.Module, layers: list[tuple[str, torch.nn.Module]], args: Any, kwargs: Any
    ) -> None:
        self._module = module
        self._layers = layers
        self._args, self._kwargs = args, kwargs
        self._versions = _versions(args, kwargs)
        self._random = random_state(module)
        held = list(tensors_held_by(module))
        # One that two modules hold stays one.
        copies = {id(value): value.detach().clone() for _, _, value in held}
        self._state = [(owner, key, copies[id(value)]) for owner, key, value in held]

    def run(self, result: Any) -> Seen | str:
        """The inputs and outputs of the layers, in order; or the reason why they cannot be told.

        Args:
            result: what the compiled call returned.
        """
        if not hasattr(torch.compiler, "set_stance") or not hasattr(torch.compiler, "_is_compiling_flag"):
            return "they are inside a compiled region, and this torch cannot run it without the compiler"
        if not runs_only_a_graph(self._module) or any(map(_has_hooks, parts(self._module))):
            return "they are inside a compiled region that does more than run a graph"
        if _versions(self._args, self._kwargs) != self._versions:
            return "they are inside a compiled region that overwrites its input"
        seen: Seen = []
        results: list[Any] = []
        failure = guard.attempt(lambda: results.append(self._run(seen)))
        if failure is not None:
            return f"they are inside a compiled region that cannot be run again ({guard.describe(failure)})"
        if not _agree(result, results[0]):
            return "the compiled region computes something else than the model without the compiler (random numbers?)"
        return seen

    @without_gradients
    def _run(self, seen: Seen) -> Any:
        with ExitStack() as stack:
            stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(_as_if_compiling())
            stack.enter_context(with_random(self._random))
            stack.enter_context(without_autocast_cache())
            stack.enter_context(holding(self._state))
            calls = WatchedCalls(replaced_functions.Patch)
            for name, layer in self._layers:
                stack.callback(_watch(calls, name, layer, seen))
            stack.enter_context(OwnTensorsOnly(value for _, _, value in self._state))
            return self._module.forward(*self._args, **self._kwargs)


def _watch(calls: WatchedCalls, name: str, layer: torch.nn.Module, seen: Seen) -> Callable[[], object]:
    def note(kind: str, value: Any) -> None:
        seen.append((name, kind, [tensor.detach().clone() for tensor in tensors_in(value)]))

    return calls.watch(
        layer, lambda _, args, kwargs: note("input", (args, kwargs)), lambda _, output: note("output", output)
    )


def _has_hooks(layer: torch.nn.Module) -> bool:
    own = own_dict(layer)
    return bool(own.get("_forward_hooks") or own.get("_forward_pre_hooks"))


def _versions(args: Any, kwargs: Any) -> list[int]:
    return [tensor._version for tensor in tensors_in((args, kwargs))]


@contextmanager
def _as_if_compiling() -> Iterator[None]:
    """Have the forward take the branches that were compiled."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


def _agree(result: Any, replay: Any) -> bool:
    pairs = list(tensors_in(result)), list(tensors_in(replay))
    return len(pairs[0]) == len(pairs[1]) and all(_same(one, other) for one, other in zip(*pairs, strict=True))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    rounding = _ROUNDING.get(one.dtype)
    one, other = one.detach(), other.detach()
    if rounding is None or one.numel() == 0:
        return torch.equal(one, other)
    finite = one[torch.isfinite(one)]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(one, other, rtol=rounding, atol=rounding * largest, equal_nan=True)
