"""The one thing that stays on a model: a step counter in front of its forward.

The counter is beside the model, which is copied, pickled and compared as without it; see ``kept_out_of_modules``.
It holds the model weakly: a cycle would keep the model's memory until the garbage collector runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.tracked_model import StepOpener
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.stack_room import has_room, in_room
from smd_agent.pytorch.model import kept_out_of_modules
from smd_agent.pytorch.model.first_call import FirstCall
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import unwrapped
from smd_agent.pytorch.plain_access import is_training, tells_plainly
from smd_agent.pytorch.torch_compile import compiler, is_dynamo_compiling, leave_uncompiled
from smd_agent.pytorch.tracing import graph_task, probe

_is_grad_enabled = torch.is_grad_enabled
_random_state = torch.default_generator.get_state
_next_number = probe(torch, "autograd._get_sequence_nr", 0)
_casts_any = probe(torch, "_C._is_any_autocast_enabled", False)
_CASTING = ("cpu", "cuda")


class ForwardCapture(StepOpener, Protocol):
    """The object that the step counter of a PyTorch model calls; the hook is one.

    Attributes:
        names_culprits: calls are kept until their step has ended.
        first_call: takes calls that train a model.
    """

    names_culprits: bool
    first_call: FirstCall

    def begins_amid_training(self, tracked: TrackedModule, train: bool) -> bool | None:
        """True if a call, to train or to evaluate, begins a step while an update is awaited."""

    @property
    def steps(self) -> TrainingSteps:
        """The steps of its training."""

    def captured_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward in a step that is saved."""

    def nested_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward of a model that is called inside of another, in a step that is saved."""


class StepCounter(kept_out_of_modules.Counter):
    """Stands in front of one module's forward, in place of ``module._call_impl``.

    hook, tracked: whose steps it counts, of which model.
    name: what the call's inputs and outputs are saved under; None for a layer of the model, which has its own.
    previous: what stood in its place before, as ``Module.compile`` sets it.
    forward: runs the module as it would run without us.
    count: what is called in the module's place.
    """

    __slots__ = ("forward", "hook", "name", "tracked")

    forward: Callable[..., Any]

    def __init__(
        self, hook: ForwardCapture, tracked: TrackedModule, name: str | None, previous: Callable[..., Any] | None
    ) -> None:
        self.hook = hook
        self.tracked = tracked
        self.name = name
        self.previous = previous

    @unseen
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Count a call of the module, and run it."""
        return self.count(*args, **kwargs)

    # Where a counter is in a compiled module, a class with its own __getstate__ may hand it to pickle or deepcopy; the
    # copy must not have a counter.
    def __reduce__(self) -> tuple[Any, ...]:
        return (type(None), ())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.previous


leave_uncompiled(StepCounter.__call__)


def counter(  # noqa: C901, PLR0915 - in every step
    hook: ForwardCapture, tracked: TrackedModule, module: torch.nn.Module, name: str | None
) -> StepCounter:
    """Make what counts a module's calls as steps, and has the saved ones captured.

    A function of its own for each, because a closure's variables are the cheapest state that there is: this runs in
    every step.
    """
    previous: Callable[..., Any] | None = kept_out_of_modules.compiled_call(module)
    reference = weakref.ref(module)
    model = weakref.ref(unwrapped(module))
    is_model = unwrapped(module) is module
    is_usual = tells_plainly(unwrapped(module))
    position = hook.position
    calls, keeps_calls, first = tracked.calls, hook.names_culprits, hook.first_call
    forward = _forward_of(reference, previous)
    call = StepCounter(hook, tracked, name, previous)

    def count(*args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0915
        try:
            # First, so that a compiler that traces this folds it to True and sees nothing else.
            if is_dynamo_compiling() or compiler._is_compiling_flag or graph_task() != -1:
                return forward(*args, **kwargs)
            if position.inside:
                if position.saving and has_room():
                    return hook.nested_forward(call, args, kwargs)
                # Not by ``forward``, which is a frame more.
                return (previous or reference()._call_impl)(*args, **kwargs)  # type: ignore[union-attr]
            module: Any = reference()
            flags: Any = module if is_model else model()
            in_training = flags.training if is_usual else is_training(flags)
            # See ``train_or_eval``.
            train = in_training or tracked.by_gradients if _is_grad_enabled() else in_training and tracked.by_mode
            clock = position.train if train else position.evaluation
            again = tracked.last == position.step or clock is not position.clock
            begins = again or position.updated or (train and position.ends_with_update)
            if position.awaits_update:
                amid = not train or position.unsure or clock is not position.clock
                begins = amid and hook.begins_amid_training(tracked, train) is True
            if begins:
                if position.open:
                    in_room(hook.finish_step)
                counted = True
                # As ``TrainingSteps.begin`` does it.
                position.awaits_update = position.ends_with_update if train else position.awaits_update
                position.newest += 1
                position.step = position.newest
                position.clock = clock
                position.updated = False
                clock.step += 1
                if clock.step >= clock.due:
                    (hook.start_step if has_room() else hook.steps.leave_unopened)()
            tracked.last = position.step
            if train and first.wanted:
                first.take(tracked, args, kwargs)
            if train and keeps_calls:
                calls.kept = args, kwargs, _random_state(), _next_number(), _casts_any() and _casts()
            position.inside = True
            try:
                run = previous or module._call_impl
                return (
                    hook.captured_forward(call, args, kwargs)
                    if position.saving and has_room()
                    else run(*args, **kwargs)
                )
            finally:
                position.inside = False
        except BaseException as error:
            instead = own_failure(error)
            if instead is None:
                raise
            counted = "counted" in locals() or not locals().get("begins", True)
            in_room(hook.count_missed, tracked, _is_grad_enabled(), counted)
        run = previous or reference()._call_impl  # type: ignore[union-attr]
        return run(*args, **kwargs) if instead.is_call else instead.of(run)

    # The compiler would take it for a part of the program where a compiled model calls the one inside of it.
    leave_uncompiled(unseen(count))
    leave_uncompiled(unseen(forward))
    call.count = count
    call.forward = forward
    return call


leave_uncompiled(is_training, with_callees=True)


def _casts() -> tuple[tuple[str, torch.dtype], ...]:
    return tuple((one, torch.get_autocast_dtype(one)) for one in _CASTING if torch.is_autocast_enabled(one))


def _forward_of(reference: weakref.ref[torch.nn.Module], previous: Callable[..., Any] | None) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return (previous or reference()._call_impl)(*args, **kwargs)  # type: ignore[union-attr]

    return forward


def counter_of(module: torch.nn.Module) -> StepCounter | None:
    """The counter in front of a module; None if it has none."""
    found: Any = kept_out_of_modules.counter_of(module)
    return found if issubclass(type(found), StepCounter) else None


def attach(tracked: TrackedModule, hook: ForwardCapture, module: torch.nn.Module) -> None:
    """Put counters in front of a model and of what wraps it.

    Args:
        tracked: the model.
        hook: whose steps they count.
        module: what is called, around the model or the model itself.
    """
    for entry, name in tracked.called_as(module):
        if counter_of(entry) is None:
            kept_out_of_modules.put(entry, counter(hook, tracked, entry, name))
            tracked.entries.append(weakref.ref(entry))


def detach(tracked: TrackedModule) -> None:
    """Take the counters of a model away again."""
    for reference in tracked.entries:
        entry = reference()
        call = None if entry is None else counter_of(entry)
        if entry is not None and call is not None and call.tracked is tracked:
            kept_out_of_modules.take(entry)
    tracked.entries.clear()


@contextmanager
def set_aside(*modules: torch.nn.Module) -> Iterator[None]:
    """Take the counters off modules, and put them in front of whatever stands in their places afterwards."""
    calls = [(module, call) for module in modules if (call := counter_of(module)) is not None]
    for module, _ in calls:
        kept_out_of_modules.take(module)
    try:
        yield
    finally:
        for module, call in calls:
            kept_out_of_modules.put(module, counter(call.hook, call.tracked, module, call.name))
