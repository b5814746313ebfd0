"""Operations of the agent's own: past the program's modes, transforms and profilers, and without gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

import torch

from smd_agent.core.failure_domains import Domain
from smd_agent.pytorch.torch_compile import leave_uncompiled
from smd_agent.pytorch.tracing import TRANSFORM, dispatch_modes, has_no_values, key_is_included, probe

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

_no_overrides = torch._C.DisableTorchFunction
_is_profiled = probe(torch, "_C._autograd._profiler_enabled", False)
_record = probe(torch, "_C._autograd._enable_record_function", None)
_set_gradients = torch._C._set_grad_enabled
_pop_mode = probe(torch, "_C._pop_torch_dispatch_stack", None)
_push_mode = probe(torch, "_C._push_on_torch_dispatch_stack", None)
_key_is_excluded = probe(torch, "_C._dispatch_tls_is_dispatch_key_excluded", True)
_BACK_NAME = "FuncTorchDynamicLayerBackMode"


def _past_transforms() -> Callable[[], Any] | None:
    """A maker of contexts in which functions are not transformed; None where there is none."""
    guard = getattr(torch._C, "_ExcludeDispatchKeyGuard", None)
    keys: list[Any] = [TRANSFORM, getattr(getattr(torch._C, "DispatchKey", None), _BACK_NAME, None)]
    if guard is None or any(key is None or type(key) is str for key in keys):
        return None
    front, back = map(torch._C.DispatchKeySet, keys)
    return partial(guard, front | back)


_PAST_TRANSFORMS = _past_transforms()


class _Unrecorded(threading.local):
    """A flag of this thread, whether its operations are kept from the program's profiler."""

    now = False


_unrecorded = _Unrecorded()


def apart(function: F) -> F:
    """Have a function of ours compute past the program's ``__torch_function__``, of tensors and of modes.

    A default device is such a mode, too. The program's modes of ``__torch_dispatch__`` and its profiler do not see it
    either, nor is it transformed by ``torch.func``. Nothing of the program's may be called in it.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        if _is_profiled() and not _unrecorded.now:
            return _without_profiler(run, args, kwargs)
        if key_is_included(TRANSFORM) and not (_PAST_TRANSFORMS is None or _key_is_excluded(TRANSFORM)):
            with _PAST_TRANSFORMS():
                return run(*args, **kwargs)
        with _no_overrides():
            if dispatch_modes() and not has_no_values():
                return _without_modes(function, args, kwargs)
            return function(*args, **kwargs)

    leave_uncompiled(run, with_callees=True)
    return cast("F", run)


def fence(doing: str, domain: Domain, again: bool = False) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """``Domain.fence``; what the function computes, it computes ``apart``."""

    def build(function: Callable[P, R]) -> Callable[P, R | None]:
        return domain.fence(doing, again=again)(apart(function))

    return build


def without_gradients(function: F) -> F:
    """Have a function of ours compute without gradients; it is no generator.

    ``torch.no_grad`` comes and goes by functions of Python, in which a signal handler of the program may raise: then
    gradients would stay off.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        before = torch.is_grad_enabled()
        try:
            _set_gradients(False)
            return function(*args, **kwargs)
        finally:
            _set_gradients(before)

    return cast("F", run)


def _without_profiler(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        _unrecorded.now = True
        _record(False)
        return function(*args, **kwargs)
    finally:
        _record(True)
        _unrecorded.now = False


def _without_modes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    modes: list[Any] = []
    try:
        modes.extend(_pop_mode(None) for _ in range(dispatch_modes()))
        return function(*args, **kwargs)
    finally:
        for mode in reversed(modes):
            _push_mode(mode)
