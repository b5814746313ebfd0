"""The search for the model being trained, in scripts that do not name it.

Trained parameters are those handed to an optimizer. While some of them belong to no known model, every outermost call
of a module in training is looked at: one that owns such a parameter is a model. Once all are accounted for, ``Module``
is as it was. A backward pass that gives a gradient to a parameter without a model shows that calls are not enough: the
model was called in evaluation mode, or where calls cannot be seen (``unseen_calls``), and is looked for among all
objects. A script without an optimizer of ``torch.optim`` shows its parameters in its first backward pass
(``without_optimizer``).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from smd_agent.core.failure_domains import STEPS
from smd_agent.core.locking import locked
from smd_agent.framework.model_finder import PATIENCE, ModelFinder
from smd_agent.framework.replaced_functions import Until, replace
from smd_agent.guard import say_once
from smd_agent.pytorch import plain_access
from smd_agent.pytorch.capture.persistent_hooks import watch
from smd_agent.pytorch.discovery import own_calls
from smd_agent.pytorch.discovery.backward_calls import PassWatch, leaves, reached_by
from smd_agent.pytorch.discovery.cached_passes import CachedPasses
from smd_agent.pytorch.discovery.transforms import TransformWatch
from smd_agent.pytorch.discovery.unseen_calls import UnseenCalls
from smd_agent.pytorch.discovery.without_optimizer import LaterParameters, WithoutOptimizer
from smd_agent.pytorch.hook import Hook
from smd_agent.pytorch.model import live_modules, step_counter, train_or_eval
from smd_agent.pytorch.model.given_to_optimizer import given_to_optimizer
from smd_agent.pytorch.model.module_calls import CallWatch
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import named_parameters, unwrapped
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.torch_compile import leave_uncompiled
from smd_agent.pytorch.tracing import graph_task
from smd_agent.pytorch.worker import feeds_a_loader

Module = torch.nn.Module


@dataclass
class Trained:
    """The kinds of tensors that the program trains, as far as it has shown.

    plain: tensors that are no parameters of modules.
    of_modules: parameters of modules.
    others: others than those that its optimizers have.
    """

    plain: bool = False
    of_modules: bool = False
    others: bool = False

    def reason(self, given: list[torch.Tensor]) -> str | None:
        """The reason why no model was found; ``given``: the parameters of optimizers that are alive."""
        if self.others and given and all(parameter.grad is None for parameter in given):
            return "gradients were computed, but of none of the parameters that an optimizer was given"
        only_plain = self.plain and not self.of_modules
        return "gradients were computed, but of no parameters of a torch.nn.Module" if only_plain else None


class ModuleFinder(ModelFinder[Module, TrackedModule, Hook]):
    """Watches optimizers being filled and, as long as it must, modules being called and backward passes.

    Args:
        find_hook: gives the hook to save with, once the first model is found; None if nothing can be saved.

    Attributes:
        paused: whether somebody else sees to what is called now.
    """

    def __init__(self, find_hook: Callable[[], Hook | None]) -> None:
        super().__init__(find_hook)
        self.lock = threading.RLock()
        self.paused = False
        self._calls = CallWatch(self._look_at, "the model is the module that is called", Until.MODEL_IS_FOUND)
        self._passes = PassWatch(self._before_pass, self._after_pass)
        # Called in evaluation mode, with trained parameters.
        self._evaluated: dict[int, weakref.ref[Module]] = {}
        self._transforms = TransformWatch()
        self._unseen = UnseenCalls(self._transforms, self._stop_watching_if_done)
        self._without_optimizer = WithoutOptimizer()
        self._later = LaterParameters(self._wait_for_later)
        self._cached = CachedPasses()
        self._trained = Trained()

    def install(self, before_updates: bool) -> None:
        """Begin to watch; called once.

        Args:
            before_updates: whether something may want to know of updates that begin.
        """
        updates.expect(before_updates)
        watch.register()
        optimizer = torch.optim.Optimizer
        replace(optimizer, "add_param_group", self._wrap_add, why="an optimizer knows what is trained")
        self._later.begin()
        self._passes.begin()
        self._transforms.begin()

    def _wrap_add(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_param_group(optimizer: Any, param_group: Any) -> Any:
            result = original(optimizer, param_group)
            self._optimizer_filled(optimizer, param_group)
            return result

        return add_param_group

    def reason(self) -> str | None:
        """The reason why nothing of the program, which ends now, was captured, as far as it shows."""
        if self.hook is not None or self.stopped:
            return None
        if self._transforms.used:
            return "gradients taken by torch.func cannot be seen"
        given = [parameter for reference in self._pending_params.values() if (parameter := reference()) is not None]
        return self._trained.reason(given)

    def stop(self) -> None:
        """Search no more: the script registers its models itself, or nothing can be saved."""
        super().stop()
        self._later.end()
        self._calls.end()
        self._passes.end()
        self._transforms.end()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Leave ``Module`` as it is by itself for a while: what is compiled now must not hold our function."""
        watching = self._calls.watching
        self._calls.end()
        try:
            yield
        finally:
            if watching and not self.stopped:
                self._calls.begin()

    @STEPS.fence("looking at a compiled model")
    def wrapped(self, module: Module) -> None:
        """A wrapper was made that may be around a known model."""
        if self.hook is not None:
            self.hook.follow_wrapper(module)

    # Parameters that are trained.

    @STEPS.fence("looking at an optimizer", again=True)
    @locked
    @apart
    def _optimizer_filled(self, optimizer: Any, group: Any) -> None:
        plain_access.given_group(optimizer, group)
        parameters = plain_access.optimized(optimizer)
        given_to_optimizer(parameters)
        self._trained.of_modules = self._trained.of_modules or any(map(plain_access.is_parameter, parameters))
        self._trained.plain = True
        updates.add(optimizer)
        self._without_optimizer.optimizer_comes(self.hook)
        self._expect(parameters)

    def _expect(self, parameters: Iterable[torch.Tensor]) -> None:
        if feeds_a_loader():
            self.stop()
        if self.expect(parameters):
            self._later.expect()
            self._calls.begin()
            self._passes.begin()

    # Modules being called.

    @STEPS.fence("looking for the model", again=True)
    @locked
    @apart
    def _look_at(self, module: Module) -> None:
        if self.paused or self._transforms.has_call():
            return
        if self._unseen.uncounted:
            self._unseen.count_calls_of(module, self.hook)
        if not self._pending_params or graph_task() != -1:
            return
        if not torch.is_grad_enabled():
            updates.evaluated(plain_access.parameters(module))
            self._cached.called(module, self._pending_params)
            return
        own = _ids(module)
        if own & self.params_without_model():
            # Trainers switch the mode of the model and forget the wrapper's.
            if plain_access.is_training(unwrapped(module)):
                tracked = self._make_known(module)
                if tracked is not None and self.hook is not None:
                    self.hook.go_on_with(tracked)
            else:
                self._evaluated[id(module)] = weakref.ref(module)
        # What has no parameters, such as a transform of the data, may be called any number of times.
        self._calls_without_match += bool(own)
        if self._calls_without_match > PATIENCE:
            self._search(self.params_without_model(), counted=True)
        self._stop_watching_if_done()

    def _stop_watching_if_done(self) -> None:
        some_uncounted = self._unseen.forget_gone()
        if not self.params_without_model():
            self._evaluated.clear()
            if not some_uncounted:
                self._calls.end()
            searching = self._unseen.models or not self.saw_training or self._without_optimizer.now
            if not searching and not self._later.are_waited_for:
                self._passes.end()

    def _make_known(self, module: Module, counted: bool = True) -> TrackedModule | None:
        """Make a model known; ``counted``: and count its calls as steps from now on."""
        tracked = self.adopt(module)
        if tracked is not None and counted and self.hook is not None:
            try:
                step_counter.attach(tracked, self.hook, module)
            except BaseException:
                self.hook.remove_model(tracked)
                raise
        return tracked

    def parts_of(self, model: Module) -> list[Module]:
        """A module and all modules below it."""
        return plain_access.parts(model)

    def track(self, hook: Hook, model: Module, inner: list[TrackedModule]) -> TrackedModule:
        """Name a model and what it gets and gives."""
        self._transforms.end()
        self._without_optimizer.count_missed(hook)
        owner = own_calls.owner_of(model, hook.models, self.params_without_model() - _ids(model))
        tracked = hook.add_model(model, owner, counted=False)
        tracked.without_optimizer = self._without_optimizer.has(model)
        if tracked.without_optimizer:
            self._later.found(tracked.names.kind)
        hook.threads.calls_models()
        tracked.last = max([tracked.last, *(part.last for part in inner)])
        return tracked

    # Backward passes.

    @STEPS.fence("looking at a backward pass", again=True)
    @locked
    @apart
    def _before_pass(self, function: str, tensors: Any, inputs: Any) -> bool | None:
        was_watching = self._calls.watching
        if self.paused:
            if self._later.are_waited_for:
                self._later.forget()
                self._stop_watching_if_done()
            return False
        if not self.saw_training:
            self._first_pass([*filter(plain_access.is_parameter, reached_by(function, tensors, inputs))])
            return False
        if self._later.are_waited_for:
            trained = self._later.trained_by(reached_by(function, tensors, inputs), self.known_params)
            if trained:
                self._without_optimizer.begin()
                self._expect(trained)
                return False
            self._stop_watching_if_done()
        if function == "backward" and was_watching and self._pending_params:
            ends = leaves(tensors)
            reached = {id(parameter) for parameter in ends if plain_access.is_parameter(parameter)}
            self._give_up({id(one) for one in ends if id(one) in self._pending_params} - reached)
            if reached and reached.isdisjoint(self._pending_params):
                self._trained.others = True
            evaluated = self._find_behind(reached) or self._find_cached(tensors)
            if evaluated and self.hook is not None and not self.hook.position.awaits_update:
                self.hook.begin_training_step()
                return True
        return bool(self._unseen.models) and self._unseen.open_step(function, self.hook)

    def _first_pass(self, reached: list[torch.Tensor]) -> None:
        """A program without an optimizer shows what it trains: its models are found when they are called next."""
        self._trained.plain = self._trained.plain or not reached
        if reached and not feeds_a_loader():
            self._without_optimizer.begin_at_first_pass()
            self._expect(reached)

    @locked
    def _wait_for_later(self) -> None:
        self._passes.begin()

    def _pass_opens_step(self) -> bool:
        """True if the next backward pass is the first of a step that no call has opened."""
        return self._unseen.pass_opens_step(self.hook)

    @STEPS.fence("looking at the end of a backward pass", again=True)
    @locked
    def _after_pass(self) -> None:
        hook, unseen = self.hook, self._unseen
        step = unseen.last_step = self.step
        if hook is None:
            return
        if unseen.models and hook.position.unsure:
            unseen.passed()
        if self._without_optimizer.now and not self.paused:
            self._without_optimizer.passed(hook, step)

    def _find_behind(self, reached: set[int]) -> bool:
        """Adopt the models of trained parameters that a backward pass reaches, and no call in training has shown.

        Whether some of them have been called, in evaluation mode.
        """
        if not (reached := reached & self.params_without_model()):
            return False
        evaluated = self._take_evaluated(reached)
        if reached := reached & self.params_without_model():
            # Compiled code may hold it; a counter put on it now would have that compiled anew.
            self._search(reached, counted=False)
        self._stop_watching_if_done()
        return evaluated

    def _take_evaluated(self, reached: set[int]) -> bool:
        """Adopt models that get these gradients in evaluation mode; whether there are any."""
        found = False
        for reference in self._evaluated.values():
            module = reference()
            if module is not None and _ids(module) & reached:
                tracked = self._make_known(module)
                if tracked is not None and self.hook is not None:
                    train_or_eval.follow_gradients(tracked)
                    found = True
        return found

    def _find_cached(self, tensors: Any) -> bool:
        """Adopt the models whose outputs a backward pass ends at; whether there are any."""
        found = [self._make_known(module) for module in self._cached.models_behind(tensors)]
        for tracked in filter(None, found):
            train_or_eval.follow_mode(tracked)
        return any(found)

    def _search(self, wanted: set[int], counted: bool) -> None:
        """Adopt the models that own these parameters, whether they were called or not."""
        for module in live_modules.topmost(wanted):
            tracked = self._make_known(module, counted)
            if tracked is None:
                return
            self._unseen.models.append(tracked)
            if self.hook is not None:
                self.hook.pass_opens_step = self._pass_opens_step
            if not counted:
                self._unseen.uncounted.append(tracked)
            self._passes.begin()
        self._give_up(wanted & self.params_without_model())

    def _give_up(self, keys: set[int]) -> None:
        """Look no more for the model of these trained parameters."""
        for key in keys:
            del self._pending_params[key]
        if keys:
            say_once("without model", f"trained parameters that belong to no module are not saved ({len(keys)})")


leave_uncompiled(ModuleFinder._pass_opens_step, with_callees=True)


def _ids(module: Module) -> set[int]:
    return {id(parameter) for _, parameter in named_parameters(module)}
