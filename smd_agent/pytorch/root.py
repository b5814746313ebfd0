"""The model being trained, and the one thing that stays on it: a step counter in front of its forward.

The counter sits in the instance's ``_compiled_call_impl``, which ``Module.__call__`` looks at first and
``Module.__getstate__`` leaves out, so the model pickles, copies and saves as without it. It holds the model weakly: a
cycle would keep the model's memory until the garbage collector runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from smd_agent.pytorch.opaque import graph_task, is_compiling
from smd_agent.pytorch.sharded import named_parameters

if TYPE_CHECKING:
    from smd_agent.pytorch.hook import Hook

SLOT = "_compiled_call_impl"

_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
COMPILED = "OptimizedModule"
_is_grad_enabled = torch.is_grad_enabled


def wrapper_chain(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """The module and, as long as it is a wrapper around one model, what it wraps."""
    while True:
        yield module
        inner = getattr(module, _WRAPPERS.get(type(module).__name__, ""), None)
        if not isinstance(inner, torch.nn.Module):
            return
        module = inner


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside of all wrappers, whose names the user knows."""
    *_, inner = wrapper_chain(module)
    return inner


class Root:
    """A model whose forward opens steps.

    name: what its tensors' names begin with, the class name unless another model has it already.
    layer_prefix: what stands before the names of its layers; empty for the first model.
    last: the global step in which it was called last; that before the first lets its first call open a step.
    busy: whether a call of it is being captured.
    """

    __slots__ = ("__weakref__", "_module", "busy", "last", "layer_prefix", "name")

    def __init__(self, module: torch.nn.Module, name: str, layer_prefix: str) -> None:
        self._module = weakref.ref(module)
        self.name = name
        self.layer_prefix = layer_prefix
        self.last = -1
        self.busy = False

    @property
    def module(self) -> torch.nn.Module | None:
        """The outermost module of the model, None once the program has let go of it."""
        return self._module()

    def parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters with the names they are saved under."""
        module = self.module
        if module is not None:
            for name, parameter in named_parameters(unwrapped(module)):
                yield f"{self.name}_{name}", parameter

    def layers(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules below the model with the names their inputs and outputs are saved under."""
        module = self.module
        if module is not None:
            for name, layer in unwrapped(module).named_modules():
                if name:
                    yield f"{self.layer_prefix}{name}", layer


class RootCall:
    """Stands in front of one module's forward, in place of ``module._call_impl``.

    hook, root: whose steps it counts, of which model.
    previous: what stood in its place before, as ``Module.compile`` sets it.
    forward: runs the module as it would run without us.
    """

    __slots__ = ("forward", "hook", "previous", "root")

    forward: Callable[..., Any]

    def __init__(self, hook: Hook, root: Root, previous: Callable[..., Any] | None) -> None:
        self.hook = hook
        self.root = root
        self.previous = previous

    # A class with its own __getstate__ may hand us to pickle or deepcopy; the copy must not have a counter.
    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        return None


def counter(hook: Hook, root: Root, module: torch.nn.Module) -> RootCall:
    """Make what counts a module's calls as steps, and has the saved ones captured.

    A class of its own for each, because a closure's variables are the cheapest state that there is: this runs in every
    step.
    """
    previous: Callable[..., Any] | None = module.__dict__.get(SLOT)
    reference = weakref.ref(module)
    pulse = hook.pulse

    def forward(*args: Any, **kwargs: Any) -> Any:
        return (previous or reference()._call_impl)(*args, **kwargs)  # type: ignore[union-attr]

    class Counter(RootCall):
        __slots__ = ()

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            # First, so that a compiler that traces this folds it to True and sees nothing else.
            if is_compiling() or graph_task() != -1:
                return forward(*args, **kwargs)
            if pulse.inside:
                if pulse.saving and not root.busy:
                    return hook.captured_forward(self, args, kwargs)
                return forward(*args, **kwargs)
            module: Any = reference()
            clock = pulse.train if module.training and _is_grad_enabled() else pulse.evaluation
            if root.last == pulse.step or clock is not pulse.clock:
                if pulse.open:
                    hook.finish_step()
                pulse.step += 1
                pulse.clock = clock
                clock.step += 1
                if clock.step >= clock.due:
                    hook.start_step()
            root.last = pulse.step
            pulse.inside = True
            try:
                if pulse.saving:
                    return hook.captured_forward(self, args, kwargs)
                return (previous or module._call_impl)(*args, **kwargs)
            finally:
                pulse.inside = False

    call = Counter(hook, root, previous)
    call.forward = forward
    return call


def attach(hook: Hook, root: Root) -> None:
    """Put counters in front of the model and of what it wraps: evaluation may call an inner one."""
    for entry in _entries(root):
        if not isinstance(entry.__dict__.get(SLOT), RootCall):
            entry.__dict__[SLOT] = counter(hook, root, entry)


def detach(root: Root) -> None:
    """Take the counters away again."""
    for entry in _entries(root):
        call = entry.__dict__.get(SLOT)
        if isinstance(call, RootCall) and call.root is root:
            drop_counter(entry)


def drop_counter(module: torch.nn.Module) -> None:
    """Take the counter off one module, if it has one."""
    call = module.__dict__.get(SLOT)
    if isinstance(call, RootCall):
        if call.previous is None:
            del module.__dict__[SLOT]
        else:
            module.__dict__[SLOT] = call.previous


@contextmanager
def set_aside(module: torch.nn.Module) -> Iterator[None]:
    """Take a module's counter off, and put it in front of whatever stands in its place afterwards."""
    call = module.__dict__.get(SLOT)
    drop_counter(module)
    try:
        yield
    finally:
        if isinstance(call, RootCall):
            module.__dict__[SLOT] = counter(call.hook, call.root, module)


def _entries(root: Root) -> Iterator[torch.nn.Module]:
    module = root.module
    if module is not None:
        for entry in wrapper_chain(module):
            yield entry
            if type(entry).__name__ == COMPILED:
                # What stands on the module inside would be compiled with it.
                return
