"""Finds the model being trained in a script that does not name it.

Trained parameters are those handed to an optimizer. While some of them belong to no known model, every outermost call
of a module in training is looked at: one that owns such a parameter is a model. Once all are accounted for, ``Module``
is as it was. A script without an optimizer of ``torch.optim`` shows its parameters in its first backward pass.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from smd_agent import session
from smd_agent.guard import say_once
from smd_agent.pytorch.hook import Hook
from smd_agent.pytorch.opaque import graph_task, is_compiling
from smd_agent.pytorch.root import wrapper_chain

Module = torch.nn.Module
LossModule = torch.nn.modules.loss._Loss

_PATIENCE = 100


class Discovery:
    """Watches optimizers being filled and, as long as it must, modules being called.

    Args:
        make_hook: called once, when the first model is found.

    Attributes:
        resting: whether what is called now is somebody else's business.
    """

    def __init__(self, make_hook: Callable[[], Hook | None]) -> None:
        self._make_hook = make_hook
        self._hook: Hook | None = None
        self._trained: dict[int, weakref.ref[torch.Tensor]] = {}
        self._original_call: Callable[..., Any] | None = None
        self._original_backward: Callable[..., Any] | None = None
        self._depth = threading.local()
        self._fruitless = 0
        self._over = False
        self.resting = False

    def install(self) -> None:
        """Begin to watch; called once."""
        optimizer = torch.optim.Optimizer
        add_param_group = optimizer.add_param_group

        @functools.wraps(add_param_group)
        def wrapper(optimizer: Any, param_group: Any) -> Any:
            result = add_param_group(optimizer, param_group)
            self._optimizer_filled(optimizer)
            return result

        optimizer.add_param_group = wrapper  # type: ignore[method-assign, assignment]
        self._watch_backward()

    @property
    def found_model(self) -> bool:
        """Whether a model has been found."""
        return self._hook is not None

    @property
    def stopped(self) -> bool:
        """Whether it has been told to look no further."""
        return self._over

    @property
    def saw_training(self) -> bool:
        """Whether the program has shown that it trains."""
        return bool(self._trained)

    def stop(self) -> None:
        """Look no further: the script registers its models itself, or nothing can be saved."""
        self._over = True
        self._unwatch_calls()
        self._unwatch_backward()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave ``Module`` as it is by itself for a while: what is compiled now must not hold our function."""
        watching = self._original_call is not None
        self._unwatch_calls()
        try:
            yield
        finally:
            if watching and not self._over:
                self._watch_calls()

    @session.fence("looking at an optimizer")
    def _optimizer_filled(self, optimizer: Any) -> None:
        self._expect(parameter for group in optimizer.param_groups for parameter in group["params"])

    def _expect(self, parameters: Iterable[torch.Tensor]) -> None:
        if self._over:
            return
        for parameter in parameters:
            self._trained[id(parameter)] = weakref.ref(parameter)
        self._fruitless = 0
        if self._homeless():
            self._watch_calls()

    def _homeless(self) -> set[int]:
        """Trained parameters that are alive and belong to no known model."""
        known = {id(parameter) for root in self._roots() for _, parameter in root.parameters()}
        self._trained = {key: ref for key, ref in self._trained.items() if ref() is not None}
        return self._trained.keys() - known

    def _roots(self) -> list[Any]:
        return self._hook.roots if self._hook is not None else []

    # Modules being called.

    def _watch_calls(self) -> None:
        if self._original_call is not None:
            return
        original = self._original_call = Module.__call__
        depth = self._depth

        @functools.wraps(original)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            level = getattr(depth, "level", 0)
            if level == 0:
                self._look_at(module)
            depth.level = level + 1
            try:
                return original(module, *args, **kwargs)
            finally:
                depth.level = level

        Module.__call__ = call  # type: ignore[method-assign]

    def _unwatch_calls(self) -> None:
        if self._original_call is not None:
            Module.__call__ = self._original_call  # type: ignore[method-assign]
            self._original_call = None

    @session.fence("looking for the model")
    def _look_at(self, module: Module) -> None:
        if (
            self.resting
            or not module.training
            or not torch.is_grad_enabled()
            or graph_task() != -1
            or isinstance(module, LossModule)
        ):
            return
        homeless = self._homeless()
        if any(id(parameter) in homeless for parameter in module.parameters()):
            self._adopt(module)
            homeless = self._homeless()
        self._fruitless += 1
        if not homeless or self._fruitless > _PATIENCE:
            self._unwatch_calls()

    def _adopt(self, module: Module) -> None:
        hook = self._hook_in_use()
        if hook is None:
            self.stop()
            return
        self._fruitless = 0
        inside = {id(part) for part in module.modules()}
        for root in [*hook.roots]:
            if root.module is not None and any(id(entry) in inside for entry in wrapper_chain(root.module)):
                hook.remove_root(root)
        hook.add_root(module)
        self._unwatch_backward()

    def _hook_in_use(self) -> Hook | None:
        if self._hook is None:
            existing = session.current()
            if isinstance(existing, Hook):
                # The script made a hook. If it registers models, it also knows which; else ours join it.
                self._hook = None if existing.roots else existing
            else:
                self._hook = self._make_hook()
        return self._hook

    # Backward passes of scripts without an optimizer.

    def _watch_backward(self) -> None:
        original = self._original_backward = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if not (self._trained or self._over or self.resting or is_compiling()):
                self._look_behind(tensors)
            return original(tensors, *args, **kwargs)

        self._backward_wrapper = backward
        torch.autograd.backward = backward

    def _unwatch_backward(self) -> None:
        # Whoever has wrapped ours meanwhile keeps it; it only passes calls through by then.
        if self._original_backward is not None and torch.autograd.backward is self._backward_wrapper:
            torch.autograd.backward = self._original_backward
        self._original_backward = None

    @session.fence("looking for the model behind a loss")
    def _look_behind(self, tensors: Any) -> None:
        leaves = list(_leaves(tensors if isinstance(tensors, (list, tuple)) else [tensors]))
        if leaves:
            say_once(
                "no optimizer",
                "no torch.optim optimizer was used before the first backward pass: capture begins with the next step",
            )
            self._expect(leaves)


def _leaves(tensors: Iterable[Any]) -> Iterable[torch.Tensor]:
    """Parameters that a backward pass from these tensors reaches."""
    nodes = [tensor.grad_fn for tensor in tensors if isinstance(tensor, torch.Tensor)]
    seen = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.nn.Parameter):
            yield variable
        nodes.extend(source for source, _ in node.next_functions)
