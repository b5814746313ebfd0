"""Finds the model being trained in a script that does not name it.

Trained parameters are those handed to an optimizer. While some of them belong to no known model, every outermost call
of a module in training is looked at: one that owns such a parameter is a model. Once all are accounted for, ``Module``
is as it was. A backward pass that gives a gradient to a parameter without a model shows that calls are not enough: the
model was called in evaluation mode, or where calls cannot be seen, and is looked for among all objects. A script
without an optimizer of ``torch.optim`` shows its parameters in its first backward pass.
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
from smd_agent.core.turns import in_turn
from smd_agent.guard import say_once
from smd_agent.pytorch import owners
from smd_agent.pytorch.calls import CallWatch
from smd_agent.pytorch.hook import Hook
from smd_agent.pytorch.opaque import graph_task
from smd_agent.pytorch.passes import PassWatch, leaves
from smd_agent.pytorch.patch import Patch
from smd_agent.pytorch.root import Root
from smd_agent.pytorch.worker import feeds_a_loader
from smd_agent.pytorch.wrappers import named_parameters, unwrapped

Module = torch.nn.Module

_PATIENCE = 100
_TRANSFORMS = ("grad", "grad_and_value", "vjp")


class Discovery:
    """Watches optimizers being filled and, as long as it must, modules being called and backward passes.

    Args:
        make_hook: called once, when the first model is found.

    Attributes:
        resting: whether what is called now is somebody else's business.
    """

    def __init__(self, make_hook: Callable[[], Hook | None]) -> None:
        self.turn = threading.RLock()
        self._make_hook = make_hook
        self._hook: Hook | None = None
        # Trained parameters for which a model is looked for.
        self._awaited: dict[int, weakref.ref[torch.Tensor]] = {}
        self._saw_training = False
        self._evaluated: dict[int, weakref.ref[Module]] = {}
        self._calls = CallWatch(self._look_at)
        self._passes = PassWatch(self._before_pass, self._after_pass)
        self._filled_in = -1
        self._fruitless = 0
        # Models that were found without a call of theirs, those of them that have no counter, and the step of the last
        # backward pass.
        self._uncalled: list[Root] = []
        self._uncounted: list[Root] = []
        self._passed_in = -1
        self._was_watching = False
        self._transforms: list[Patch] = []
        self._transformed = False
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
        self._passes.begin()
        for name in _TRANSFORMS:
            self._transforms.append(Patch(torch.func, name, self._wrap_transform))

    def should_have_found(self) -> bool:
        """Whether the program, which ends now, has trained something that was not found; what can be said is said."""
        if self._over or self._hook is not None:
            return False
        if self._transformed:
            say_once("torch.func", "gradients taken by torch.func cannot be seen: a model trained by them is not saved")
            return False
        return self._saw_training

    def stop(self) -> None:
        """Look no further: the script registers its models itself, or nothing can be saved."""
        self._over = True
        self._calls.end()
        self._passes.end()
        self._leave_transforms()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave ``Module`` as it is by itself for a while: what is compiled now must not hold our function."""
        watching = self._calls.watching
        self._calls.end()
        try:
            yield
        finally:
            if watching and not self._over:
                self._calls.begin()

    @session.fence("looking at a compiled model")
    def wrapped(self, module: Module) -> None:
        """A wrapper was made that may be around a known model."""
        if self._hook is not None:
            self._hook.follow_wrapper(module)

    # Parameters that are trained.

    @session.fence("looking at an optimizer")
    @in_turn
    def _optimizer_filled(self, optimizer: Any) -> None:
        self._expect(parameter for group in optimizer.param_groups for parameter in group["params"])

    def _expect(self, parameters: Iterable[torch.Tensor]) -> None:
        if feeds_a_loader():
            self.stop()
        if self._over:
            return
        for parameter in parameters:
            self._saw_training = True
            self._awaited[id(parameter)] = weakref.ref(parameter)
        self._fruitless = 0
        self._filled_in = self._step
        if self._homeless():
            self._calls.begin()
            self._passes.begin()

    def _homeless(self) -> set[int]:
        """Trained parameters that are alive and have not belonged to a known model yet."""
        known = {id(parameter) for root in self._roots() for _, parameter in root.parameters()}
        awaited = self._awaited.items()
        self._awaited = {key: ref for key, ref in awaited if key not in known and ref() is not None}
        return set(self._awaited)

    def _roots(self) -> list[Root]:
        return self._hook.roots if self._hook is not None else []

    @property
    def _step(self) -> int:
        return self._hook.step if self._hook is not None else -1

    # Modules being called.

    @session.fence("looking for the model")
    @in_turn
    def _look_at(self, module: Module) -> None:
        if self.resting:
            return
        if self._uncounted:
            self._count_calls_of(module)
        if not self._awaited or not torch.is_grad_enabled() or graph_task() != -1:
            return
        own = _ids(module)
        homeless = self._homeless()
        if own & homeless:
            # Trainers switch the mode of the model and forget the wrapper's.
            if unwrapped(module).training:
                self._adopt(module)
            else:
                self._evaluated[id(module)] = weakref.ref(module)
        # What has no parameters, such as a transform of the data, may be called any number of times.
        self._fruitless += bool(own)
        if self._fruitless > _PATIENCE:
            self._search(self._homeless(), counted=True)
        self._rest_if_done()

    def _count_calls_of(self, module: Module) -> None:
        """Put the counter on a model that can be called where calls are seen, now that it is."""
        for root in self._uncounted:
            if self._hook is not None and root.model is not None and unwrapped(module) is root.model:
                root.attach(self._hook, module)
                self._uncounted.remove(root)
                self._rest_if_done()
                return

    def _rest_if_done(self) -> None:
        self._uncounted = [root for root in self._uncounted if root.model is not None]
        if not self._homeless():
            self._evaluated.clear()
            if not self._uncounted:
                self._calls.end()
            if not self._uncalled and self._saw_training:
                self._passes.end()

    def _adopt(self, module: Module, counted: bool = True) -> Root | None:
        hook = self._hook_in_use()
        if hook is None:
            self.stop()
            return None
        self._fruitless = 0
        inside = {id(part) for part in module.modules()}
        replaced = [root for root in hook.roots if root.model is not None and id(root.model) in inside]
        for root in replaced:
            hook.remove_root(root)
        self._leave_transforms()
        root = hook.add_root(module, self._owner_of(module, hook), counted)
        hook.threads.calls_models()
        root.last = max([root.last, *(part.last for part in replaced)])
        if self._filled_in == hook.step:
            # A training that was prepared after the last step of another one does not belong to that step.
            root.last = hook.step
        return root

    def _owner_of(self, module: Module, hook: Hook) -> Module | None:
        """The module that this one is called as a part of, if the program calls other parts by themselves too."""
        for root in hook.roots:
            if root.owner is not None and any(part is module for part in root.owner.modules()):
                return root.owner
        others = self._homeless() - _ids(module)
        return owners.owner_of(module, others) if others else None

    def _hook_in_use(self) -> Hook | None:
        if self._hook is None:
            existing = session.current()
            if isinstance(existing, Hook):
                # The script made a hook. If it registers models, it also knows which; else ours join it.
                self._hook = None if existing.roots else existing
            else:
                self._hook = self._make_hook()
        return self._hook

    # Gradients without a backward pass.

    def _wrap_transform(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def transform(*args: Any, **kwargs: Any) -> Any:
            self._transformed = True
            return original(*args, **kwargs)

        return transform

    def _leave_transforms(self) -> None:
        while self._transforms:
            self._transforms.pop().remove()

    # Backward passes.

    @session.fence("looking at a backward pass")
    @in_turn
    def _before_pass(self, function: str, tensors: Any, inputs: Any) -> bool | None:
        self._was_watching = self._calls.watching
        if self.resting:
            return False
        if not self._saw_training:
            reached = leaves(tensors) if function == "backward" else _parameters_in(inputs)
            if reached and not feeds_a_loader():
                say_once(
                    "no optimizer",
                    "no torch.optim optimizer was used before the first backward pass: "
                    "capture begins with the next step",
                )
                self._expect(reached)
            return False
        self._uncalled = [root for root in self._uncalled if root.model is not None]
        if not self._uncalled or function != "backward" or self._hook is None:
            return False
        return self._begin_step_of_pass(self._hook)

    def _begin_step_of_pass(self, hook: Hook) -> bool:
        """Open a step, unless a call of a model has opened one since the last pass; True if it did."""
        pulse = hook.pulse
        if not self._pass_opens_step():
            # Its calls are seen after all.
            self._uncalled.clear()
            self._rest_if_done()
            return False
        for root in self._uncalled:
            called = pulse.step != self._passed_in and root.last == pulse.step
            if called and root.model is not None and not root.model.training:
                hook.follow_gradients(root)
        names = ", ".join(root.title for root in self._uncalled if not root.by_gradients)
        if names:
            say_once(
                ("unseen calls", names),
                f"calls of {names} cannot be seen, as in a compiled function: every backward pass is a step; "
                "weights, gradients and losses are saved, inputs and outputs are not",
            )
        hook.begin_unseen_step()
        return True

    def _pass_opens_step(self) -> bool:
        """Whether the next backward pass is a step of its own."""
        if self._hook is None or all(root.model is None for root in self._uncalled):
            return False
        pulse = self._hook.pulse
        return pulse.step == self._passed_in or pulse.clock is not pulse.train

    @session.fence("looking for the model behind a backward pass")
    @in_turn
    def _after_pass(self) -> None:
        self._passed_in = self._step
        if self.resting or not (self._was_watching and self._calls.watching):
            return
        homeless = self._homeless()
        reached = {key for key in homeless if _has_gradient(self._awaited[key]())}
        if not reached:
            return
        self._take_evaluated(reached)
        reached &= self._homeless()
        if reached:
            # Compiled code may hold it; a counter put on it now would have that compiled anew.
            self._search(reached, counted=False)
        self._rest_if_done()

    def _take_evaluated(self, reached: set[int]) -> None:
        """Adopt models that got these gradients in evaluation mode."""
        for reference in self._evaluated.values():
            module = reference()
            if module is not None and _ids(module) & reached:
                root = self._adopt(module)
                if root is not None and self._hook is not None:
                    self._hook.follow_gradients(root)

    def _search(self, wanted: set[int], counted: bool) -> None:
        """Adopt the models that own these parameters, whether they were called or not."""
        for module in owners.topmost(wanted):
            root = self._adopt(module, counted)
            if root is None:
                return
            self._uncalled.append(root)
            if self._hook is not None:
                self._hook.pass_opens_step = self._pass_opens_step
            if not counted:
                self._uncounted.append(root)
            self._passes.begin()
        left = wanted & self._homeless()
        for key in left:
            del self._awaited[key]
        if left:
            say_once("without model", f"{len(left)} trained parameters belong to no module: they are not saved")


def _ids(module: Module) -> set[int]:
    return {id(parameter) for _, parameter in named_parameters(module)}


def _has_gradient(parameter: torch.Tensor | None) -> bool:
    return parameter is not None and parameter.is_leaf and parameter.grad is not None


def _parameters_in(inputs: Any) -> list[torch.Tensor]:
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return [tensor for tensor in inputs if isinstance(tensor, torch.nn.Parameter)]
