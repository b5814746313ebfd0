"""Trainings without an optimizer of ``torch.optim``: the program updates parameters by hand, or by another library.

Such a training shows its parameters in a backward pass, and every pass ends a step. The first training of a program is
one if there is no optimizer before the first pass. Later ones may train parameters that modules get once the program
trains: PyTorch tells of parameters as they are registered; a pass that reaches some of them, and nothing that an
optimizer has, shows that they are trained.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.model_finder import PATIENCE
from smd_agent.guard import say_once
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch import hook_numbers, plain_access
from smd_agent.pytorch.model import live_modules
from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.torch_compile import compiler, is_dynamo_compiling, leave_uncompiled

if TYPE_CHECKING:
    from smd_agent.pytorch.hook import Hook


class WithoutOptimizer:
    """The training that was seen last, as far as it has no optimizer.

    Attributes:
        now: whether it has none, so that every backward pass ends a step.
    """

    def __init__(self) -> None:
        self.now = False
        self._steps_missed = 0

    def begin(self) -> None:
        """A backward pass has shown such a training: its models are found when they are called next."""
        self.now = True
        self._steps_missed = 1

    def begin_at_first_pass(self) -> None:
        """There was no optimizer before the first backward pass of the program."""
        say_once(
            "no optimizer",
            "no torch.optim optimizer was used before the first backward pass: every pass ends a step, "
            "and what is saved begins with step 1",
        )
        self.begin()

    def optimizer_comes(self, hook: Hook | None) -> None:
        """An optimizer is given parameters: updates end steps from now on."""
        if self.now:
            self.now = False
            if hook is not None:
                hook.steps.pass_ends_step = False

    def count_missed(self, hook: Hook) -> None:
        """Count the program's steps from its first one on, before a model is made known to the hook."""
        if self._steps_missed:
            if hook.position.open:
                hook.finish_step()
            hook.position.begin(hook.position.train, self._steps_missed)
            self._steps_missed = 0
        hook.steps.pass_ends_step = self.now

    def has(self, model: torch.nn.Module) -> bool:
        """True if a model is trained by it."""
        return self.now and not any(map(was_given, plain_access.parameters(model)))

    def passed(self, hook: Hook, step: int) -> None:
        """A backward pass is over, which ends the step unless a model of another training was called in it."""
        called = (tracked for tracked in hook.models if tracked.last == step)
        if all(tracked.without_optimizer for tracked in called):
            hook.steps.passed()


class LaterParameters:
    """The parameters that modules get once the program trains, and that no optimizer has.

    Args:
        came: called when there is one, and there was none.
    """

    def __init__(self, came: Callable[[], object]) -> None:
        self._came = came
        self._waiting: dict[int, weakref.ref[torch.Tensor]] = {}
        # Looking through a pass takes time, and a program may make modules in each iteration.
        self._passes_left = 0
        self._training_began = False

    def begin(self) -> None:
        """Be told of parameters; before a thread makes modules, whose hooks must not change meanwhile."""
        hook_numbers.register(register_module_parameter_registration_hook, self._make_hook())

    def expect(self) -> None:
        """A training has been seen: parameters that come from now on may be another's."""
        self._passes_left = PATIENCE

    def forget(self) -> None:
        """Wait for none of them."""
        self._waiting.clear()

    def end(self) -> None:
        """Wait for none that come from now on either."""
        self._passes_left = 0
        self.forget()

    @property
    def are_waited_for(self) -> bool:
        """True if there are any, those that have gone or got an optimizer since the last pass among them."""
        return bool(self._waiting)

    def trained_by(self, reached: list[torch.Tensor], known: Callable[[], set[int]]) -> list[torch.Tensor]:
        """The parameters that a backward pass shows to be trained without an optimizer.

        Args:
            reached: all leaves of its graph.
            known: gives the ids of the parameters of models that are known.
        """
        self._passes_left -= 1
        self._drop(key for key, one in [*self._waiting.items()] if (alive := one()) is None or was_given(alive))
        parameters = {id(one): one for one in reached if plain_access.is_parameter(one)}
        if not parameters.keys().isdisjoint(self._waiting) and not any(map(was_given, reached)):
            models = live_modules.topmost({*parameters}) if known().isdisjoint(parameters) else []
            self._drop(parameters)
            # An adversary, or a loss that is a network, gets gradients too.
            if models and all(map(plain_access.is_training, models)):
                self._training_began = True
                return [*parameters.values()]
        if self._passes_left <= 0:
            self.forget()
        return []

    def found(self, kind: str) -> None:
        """A model of this class, trained without an optimizer, has become known."""
        if self._training_began:
            say_once(
                ("later without optimizer", kind),
                f"{kind} is trained without an optimizer of torch.optim, after another training: "
                "every pass ends a step, and its first step is not saved",
            )

    def _drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            self._waiting.pop(key, None)

    def _make_hook(self) -> Callable[..., None]:
        def registered(module: Any, name: Any, parameter: Any) -> None:
            try:
                # First, so that a compiler that traces this folds it to True and sees nothing else.
                if is_dynamo_compiling() or compiler._is_compiling_flag:
                    return
                if self._passes_left > 0:
                    self._registered(parameter)
            except BaseException as error:
                if own_failure(error) is None:
                    raise

        leave_uncompiled(unseen(registered))
        return registered

    @fence("looking at a new parameter", STEPS, again=True)
    def _registered(self, parameter: torch.Tensor) -> None:
        if not was_given(parameter):
            first = not self._waiting
            self._waiting[id(parameter)] = weakref.ref(parameter)
            if first:
                self._came()
