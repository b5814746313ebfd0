"""PyTorch's training for the observer of `verify`, which loads this file; it imports nothing of the package."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

if TYPE_CHECKING:
    from smd_agent.framework.observer import Observer, Value


def watch(module: Any, observer: Observer) -> None:
    """Have losses of backward passes and updates of optimizers noted."""
    weights = _Weights()

    def before_backward(*args: Any, **kwargs: Any) -> None:
        tensors = args[0] if args else kwargs.get("tensors")
        if not torch.compiler.is_compiling():
            for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors or ():
                observer.loss("loss", _value(tensor))

    def after_update(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            observer.look(lambda: observer.updated(optimizer, weights.of, weights.beside), "an update")

    leave_uncompiled = observer.of_package("pytorch/torch_compile.py").leave_uncompiled
    # Tensor.backward comes by here too.
    leave_uncompiled(observer.around(torch.autograd, "backward", before_backward))
    leave_uncompiled(after_update)
    register_optimizer_step_post_hook(after_update)
    observer.generator("PyTorch", lambda: torch.get_rng_state().numpy().tobytes())
    observer.generator("CUDA", _of_gpus)


class _Weights:
    """The parameters of optimizers, by the names that modules have for them, and the buffers of these modules."""

    def __init__(self) -> None:
        self._optimizers: list[weakref.ref[Any]] = []
        # By optimizer: modules that own buffers, the attribute's name, and the whole one.
        self._buffers: dict[int, list[tuple[weakref.ref[Any], str, str]]] = {}
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}

    def of(self, optimizer: Any) -> list[tuple[str, Value]]:
        """Those of one optimizer, in its order."""
        if not any(known() is optimizer for known in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))
            modules = self._look_for_names()
            self._buffers[id(optimizer)] = _buffers_of(modules, {id(one) for one in _parameters(optimizer)})
        parameters = _parameters(optimizer)
        return [(self._name(parameter, n), _value(parameter)) for n, parameter in enumerate(parameters)]

    def beside(self, optimizer: Any) -> Iterator[tuple[str, Value]]:
        """The buffers of the modules that it trains, as the modules have them now."""
        for known, key, name in self._buffers.get(id(optimizer), ()):
            buffer = getattr(known(), "_buffers", {}).get(key)
            if buffer is not None:
                yield name, _value(buffer)

    def _name(self, parameter: Any, number: int) -> str:
        known = self._names.get(id(parameter))
        return known[1] if known is not None and known[0]() is parameter else f"parameter {number}"

    def _look_for_names(self) -> list[Any]:
        # Never isinstance: it would ask proxies, which may raise.
        modules = [found for found in gc.get_objects() if issubclass(type(found), torch.nn.Module)]
        for module in modules:
            for name, parameter in module.named_parameters(remove_duplicate=False):
                known = self._names.get(id(parameter))
                if known is None or known[0]() is not parameter or (len(name), known[1]) > (len(known[1]), name):
                    self._names[id(parameter)] = weakref.ref(parameter), name
        return modules


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _buffers_of(modules: list[Any], trained: set[int]) -> list[tuple[weakref.ref[Any], str, str]]:
    """The buffers of all modules that have one of these parameters: the owner, its name for them, and their longest."""
    found: dict[tuple[int, str], tuple[weakref.ref[Any], str, str]] = {}
    for module in modules:
        if trained.isdisjoint(map(id, module.parameters())):
            continue
        for prefix, owner in module.named_modules(remove_duplicate=False):
            for key in owner._buffers:
                name = f"{prefix}.{key}" if prefix else key
                known = found.get((id(owner), key))
                if known is None or (len(name), known[2]) > (len(known[2]), name):
                    found[id(owner), key] = weakref.ref(owner), key, name
    return [*found.values()]


def _value(tensor: Any) -> Value:
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.is_meta:
        return "meta", (), b""
    dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    flat = tensor.resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return dtype, shape, flat.view(torch.uint8).numpy().tobytes()


def _of_gpus() -> bytes | None:
    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return None
    return b"".join(_states())


def _states() -> Iterator[bytes]:
    for state in torch.cuda.get_rng_state_all():
        yield state.numpy().tobytes()
