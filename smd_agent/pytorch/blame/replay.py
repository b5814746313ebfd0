"""The last call of a model, made again inside the process before its update, without anybody noticing."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import BuiltinFunctionType, ModuleType
from typing import Any, NamedTuple

import torch

from smd_agent import guard
from smd_agent.core.clock import RunPosition
from smd_agent.framework.plain_access import is_a
from smd_agent.interpreter.unnoticed_calls import Noticed, UnnoticedCalls
from smd_agent.pytorch.arrays import PLAIN_CLASSES, tensors_in
from smd_agent.pytorch.blame.graph import Graph, same_bits, saved_by
from smd_agent.pytorch.blame.operations import Found, Operations, next_number
from smd_agent.pytorch.model.tracked_module import KeptCall, TrackedModule
from smd_agent.pytorch.plain_access import own_dict, parts
from smd_agent.pytorch.torch_compile import has_compiled
from smd_agent.pytorch.tracing import dispatch_modes, probe
from smd_agent.pytorch.unnoticed import (
    Refused,
    holding,
    random_state,
    tensors_held_by,
    with_random,
    without_autocast_cache,
)

_TORCH = os.path.dirname(torch.__file__) + os.sep
_AGENT = __file__.rpartition("pytorch")[0]
_PYTHON = sysconfig.get_path("stdlib") + os.sep
# Files of Python's own that change nothing but what they are given.
_PURE = ("abc", "contextlib", "copy", "dataclasses", "enum", "functools", "inspect", "types", "typing", "weakref")
_TRUSTED = {f"{_PYTHON}{name}.py" for name in _PURE} | {os.path.join(_PYTHON, "collections", "__init__.py")}
_TRUSTED |= {f"<frozen {name}>" for name in (*_PURE, "importlib._bootstrap")}
# What loads data, talks to others or starts passes of its own is none of a forward.
_OTHERS = ("torch.utils.data", "torch.distributed", "torch.optim", "torch.multiprocessing")
_FORBIDDEN = {
    *("run_backward", "numpy", "__array__", "data_ptr", "untyped_storage", "share_memory_", "set_", "resize_"),
    *("requires_grad_", "detach_", "_set_grad_fn", "warn", "warn_explicit"),
}
_MODULES_OWN = ("_modules", "_parameters", "_buffers")
# Of batch norms: the call has changed them already.
RUNNING = {"running_mean", "running_var"}

_SPACES = (torch._C._VariableFunctions, torch._C._nn)

_is_profiled = probe(torch, "_C._autograd._profiler_enabled", False)
_engine: Any = torch.autograd.Variable._execution_engine

# Code that ran well in the step may raise any of these when it runs once more.
_OF_CODE = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, NameError),
    *(RuntimeError, StopIteration, TypeError, ValueError),
)


class NotReplayed(Exception):
    """The call cannot be made again, or is not the same then; why, in words."""


class Result(NamedTuple):
    """The findings of a replay.

    Attributes:
        operations: those that it was made of.
        outputs: what the model returned; None where it was ended before.
        before, behind: numbers of the graph's first node and of the one after its last.
        gradients: of the parameters that were asked for.
    """

    operations: Operations
    outputs: list[torch.Tensor] | None
    before: int
    behind: int
    gradients: list[torch.Tensor | None]


def is_known(file: str) -> bool:
    """True if a file of Python's code is none of the program's, and changes nothing but what it is given."""
    return file.startswith((_TORCH, _AGENT)) or file in _TRUSTED


def _is_ours(file: str) -> bool:
    return file.startswith(_AGENT)


def replay(
    tracked: TrackedModule, call: KeptCall, position: RunPosition, wanted: list[torch.nn.Parameter] | None = None
) -> Result:
    """Call a model again as it was called last.

    Args:
        tracked: the model.
        call: what it was called with.
        position: of the run.
        wanted: parameters whose gradients of the sum of all outputs are computed too.

    Raises:
        NotReplayed: that could be noticed.
    """
    model = tracked.model
    if model is None or any("ScriptModule" in base.__name__ for part in parts(model) for base in type(part).__mro__):
        raise NotReplayed("the model is none of Python's code any more")
    if _is_profiled() or dispatch_modes():
        raise NotReplayed("the program watches what is computed")
    try:
        return _replay(model, tracked, call, position, wanted)
    except Noticed as error:
        raise NotReplayed(f"its code {error}") from None
    except Refused as error:
        raise NotReplayed(str(error)) from None
    except _OF_CODE as error:
        raise NotReplayed(guard.describe(error)) from None


def _replay(
    model: torch.nn.Module,
    tracked: TrackedModule,
    call: KeptCall,
    position: RunPosition,
    wanted: list[torch.nn.Parameter] | None,
) -> Result:
    args, kwargs, state, _, autocast = call
    held = list(tensors_held_by(model))
    copies = {id(value): value.detach().clone() for _, _, value in held}
    given = [tensor for tensor in tensors_in((args, kwargs)) if tensor.dim()]
    names = {id(layer): name for name, layer in tracked.layers()} | {id(model): tracked.names.title}
    rows = given[0].shape[0] if given else 0
    operations = Operations(iter(copies.values()), names, rows, _run.__code__, is_known)
    calls = UnnoticedCalls(_is_ours, is_known, _is_harmless, _FORBIDDEN)
    for part in parts(model):
        calls.look(part)
        for name in _MODULES_OWN:
            calls.keep(own_dict(part).get(name, {}))
    calls.look((args, kwargs))
    with ExitStack() as stack:
        stack.enter_context(_at_rest(position))
        if has_compiled() and hasattr(torch.compiler, "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(with_random((state, random_state(model)[1])))
        if torch._C._is_any_autocast_enabled():
            stack.enter_context(without_autocast_cache())
        stack.enter_context(_autocast(autocast))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(holding([(owner, key, copies[id(value)]) for owner, key, value in held]))
        return calls.call(lambda: _run(model, args, kwargs, operations, wanted))


def _run(
    model: torch.nn.Module, args: Any, kwargs: Any, operations: Operations, wanted: list[torch.nn.Parameter] | None
) -> Result:
    before, behind = next_number(), 0
    outputs: list[torch.Tensor] | None = None
    gradients: list[torch.Tensor | None] = []
    try:
        with operations:
            run: Any = model._call_impl
            outputs = tensors_in(run(*args, **kwargs))
            behind = next_number()
            starts = [one for one in outputs if one.requires_grad and one.is_floating_point()]
            if wanted and starts:
                ones = tuple(torch.ones_like(one) for one in starts)
                found = _engine.run_backward(
                    tuple(starts), ones, False, False, tuple(wanted), allow_unreachable=True, accumulate_grad=False
                )
                gradients = [*found]
    except Found:
        pass
    return Result(operations, outputs, before, behind or next_number(), gradients)


@contextmanager
def _at_rest(position: RunPosition) -> Iterator[None]:
    """Have the agent take calls of models for parts of a step that is not saved."""
    inside, saving = position.inside, position.saving
    position.inside, position.saving = True, False
    try:
        yield
    finally:
        position.inside, position.saving = inside, saving


@contextmanager
def _autocast(kept: Any) -> Iterator[None]:
    if not kept:
        yield
        return
    with ExitStack() as stack:
        for device, dtype in kept:
            stack.enter_context(torch.autocast(device, dtype=dtype))
        yield


def _is_harmless(value: Any) -> bool:
    kind = value if is_a(value, type) else type(value)
    if kind is BuiltinFunctionType:
        return _is_of_torch(value)
    module = vars(kind).get("__module__", kind.__module__)
    is_module = kind is not value and issubclass(kind, torch.nn.Module)
    if is_module or type(module) is not str or module.partition(".")[0] != "torch":
        return False
    return not module.startswith(_OTHERS) and not issubclass(kind, torch.Generator)


def _is_of_torch(function: Any) -> bool:
    owner = function.__self__
    of = owner.__name__ if is_a(owner, ModuleType) else function.__module__
    if type(of) is str:
        return of.partition(".")[0] == "torch"
    return any(getattr(space, function.__name__, None) == function for space in _SPACES)


def has_same_nodes(live: Graph, call: KeptCall, result: Result) -> bool:
    """True if a replay has made nodes of the same operations as the call."""
    return all(other.name() == node.name() for node, other in _pairs(live, call, result))


def agrees(live: Graph, call: KeptCall, result: Result) -> bool:
    """True if they have kept the same bits, too."""
    return all(other.name() == node.name() and _same_saved(node, other) for node, other in _pairs(live, call, result))


def _pairs(live: Graph, call: KeptCall, result: Result) -> Iterator[tuple[Any, Any]]:
    if live.is_compiled:
        # Its nodes are others.
        return
    for number, node in Graph(result.outputs or ()).nodes.items():
        other = live.nodes.get(number - result.before + call[3])
        if number >= result.before and other is not None:
            yield node, other


def _same_saved(node: Any, other: Any) -> bool:
    try:
        kept, known = dict(saved_by(node)), dict(saved_by(other))
    except RuntimeError:
        # Something has been changed since.
        return False
    names = (kept.keys() & known.keys()) - RUNNING
    return all(same_bits(kept[name], known[name]) for name in names if type(kept[name]) in PLAIN_CLASSES)
