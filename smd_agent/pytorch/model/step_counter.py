"""The model being trained, and the one thing that stays on it: a step counter in front of its forward.

The counter is beside the model, which is copied, pickled and compared as without it; see ``counter_place``. It holds
the model weakly: a cycle would keep the model's memory until the garbage collector runs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.error_boundary import own_failure
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_bounds import TrainingSteps
from smd_agent.framework.tracked_model import StepOpener, TrackedModel
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.stack_room import has_room, in_room
from smd_agent.pytorch.model import counter_place
from smd_agent.pytorch.model.wrappers import (
    class_name,
    covering_child,
    named_layers,
    named_parameters,
    unwrapped,
    wrapper_chain,
)
from smd_agent.pytorch.structure import is_training, parts, tells_plainly
from smd_agent.pytorch.tracing import apart, compiler, graph_task, is_dynamo_compiling, leave_uncompiled

_LOOKED_AT = 16
"""Parameters of a model that are looked at for updates."""

_is_grad_enabled = torch.is_grad_enabled


class ForwardCapture(StepOpener, Protocol):
    """What the step counter of a PyTorch model calls; the hook is one."""

    def begins_amid_training(self, tracked: TrackedModule, train: bool) -> bool | None:
        """Whether a call, to train or to evaluate, begins a step while an update is awaited."""

    @property
    def steps(self) -> TrainingSteps:
        """The steps of its training."""

    def captured_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward in a step that is saved."""

    def nested_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward of a model that is called inside of another, in a step that is saved."""


class TrackedModule(TrackedModel[torch.nn.Module]):
    """A model whose forward opens steps.

    Args:
        module: the outermost module that is called.
        title: the class name, of the owner if there is one, with a number behind it if another model has it already.
        first: whether names of layers need no title before them.
        owner: the module that the program calls this model as a part of, which gives it its names.
        path: what the model is called there.

    Attributes:
        title: the same.
        kind: the name of its class.
        name: what its inputs and outputs are called.
        thread: the one that found it, or has called it last in a step that is saved.
        called: whether it has been called in such a step, from no other model.
        busy: whether a call of it is being captured.
        by_gradients: whether it gets gradients in evaluation mode; then gradients being enabled tells TRAIN from EVAL.
        by_mode: whether its training calls it without gradients, too; then its mode alone tells TRAIN from EVAL.
        without_optimizer: whether it is trained without an optimizer, so that every backward pass ends a step.
        states: what parameters and their gradients were when they were looked at last, by the parameters' ids.
    """

    __slots__ = (
        "_covering",
        "_entries",
        "_layer_prefix",
        "_outer",
        "_owner",
        "_prefix",
        "busy",
        "by_gradients",
        "by_mode",
        "called",
        "kind",
        "name",
        "states",
        "thread",
        "title",
        "without_optimizer",
    )

    def __init__(
        self,
        module: torch.nn.Module,
        title: str,
        first: bool,
        owner: torch.nn.Module | None = None,
        path: str = "",
    ) -> None:
        super().__init__(unwrapped(module))
        self.kind = class_name(module)
        self._outer = weakref.ref(module)
        self._owner = None if owner is None else weakref.ref(owner)
        self._entries: list[weakref.ref[torch.nn.Module]] = []
        # Parts of which each holds all parameters, the outermost first, and what names of theirs begin with.
        self._covering: list[tuple[str, str, weakref.ref[torch.nn.Module]]] = []
        before = "" if first else f"{title}_"
        self.title = title
        self.name = f"{before}{path}" if path else title
        self._prefix = f"{title}_{path}." if path else f"{title}_"
        self._layer_prefix = f"{before}{path}." if path else before
        self.thread = threading.get_ident()
        self.called = False
        self.busy = False
        self.by_gradients = False
        self.by_mode = False
        self.without_optimizer = False
        self.states: dict[int, tuple[int, tuple[int, int] | None]] = {}
        self.was_updated()

    @property
    def model(self) -> torch.nn.Module | None:
        """The model or, once that is gone, the outermost part of it that is alive and holds all of its parameters.

        A program may make a wrapper around its net anew in each iteration.
        """
        model = self._model()
        while model is None and self._covering:
            self._prefix, self._layer_prefix, self._model = self._covering.pop(0)
            self.is_whole = False
            model = self._model()
        return model

    @apart
    def was_updated(self, by_gradients: bool = True) -> bool:
        """Whether parameters have been changed since this was asked last; some of them are looked at.

        Args:
            by_gradients: whether changed gradients are a sign of it too.
        """
        trained = [
            parameter
            for _, parameter in self.parameters()
            if parameter.requires_grad and parameter.is_leaf and not is_a(parameter, UninitializedParameter)
        ]
        states = {id(p): (p._version, _state(p.grad)) for p in trained[:: len(trained) // _LOOKED_AT + 1]}
        known, self.states = self.states, states
        compared = [(known[key], state) for key, state in states.items() if key in known]
        return any(before != after if by_gradients else before[0] != after[0] for before, after in compared)

    def is_updated_in_evaluation(self, step: int, updated: set[int]) -> bool:
        """Whether it was called in evaluation mode in this step, which is not known of it, and has such parameters."""
        model = self.model
        called = self.last == step and model is not None and not is_training(model)
        return called and not self.by_gradients and any(id(one) in updated for _, one in self.parameters())

    @property
    def owner(self) -> torch.nn.Module | None:
        """The module that gives the model its names, if it is not the model itself."""
        return None if self._owner is None else self._owner()

    @property
    def module(self) -> torch.nn.Module | None:
        """The outermost module around the model that is alive."""
        # A module may have a length and be false.
        outer = self._outer()
        return outer if outer is not None else self.model

    def parts(self) -> Iterable[torch.nn.Module]:
        """All modules of it and of what is around it."""
        module = self.module
        return parts(module) if module is not None else ()

    def parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters with the names they are saved under."""
        model = self.model
        if model is not None:
            for name, parameter in named_parameters(model):
                yield self.name_of(name), parameter

    def name_of(self, path: str) -> str:
        """The name that a parameter is saved under which is called so in the model."""
        return f"{self._prefix}{path}"

    def layers(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules below the model with the names their inputs and outputs are saved under."""
        model = self.model
        if model is not None:
            for name, layer in named_layers(model):
                if name:
                    yield f"{self._layer_prefix}{name}", layer
                elif not self.is_whole:
                    yield self._layer_prefix.removesuffix("."), layer

    def attach(self, hook: ForwardCapture, module: torch.nn.Module) -> None:
        """Put counters in front of the model and of what wraps it.

        Args:
            module: what is called, around the model or the model itself.
        """
        self._outer = weakref.ref(module)
        for entry in wrapper_chain(module):
            self._attach_to(hook, entry, self.name)
        # What holds a net and its loss is trained; the net alone is evaluated.
        model = self.model
        names = {} if model is None else {id(layer): name for name, layer in named_layers(model)}
        self._covering = []
        while model is not None and (inner := covering_child(model)) is not None:
            for entry in wrapper_chain(inner):
                self._attach_to(hook, entry, None)
            model = unwrapped(inner)
            path = f"{names.get(id(model), '')}."
            self._covering.append((f"{self._prefix}{path}", f"{self._layer_prefix}{path}", weakref.ref(model)))

    def detach(self) -> None:
        """Take the counters away again."""
        for reference in self._entries:
            entry = reference()
            call = None if entry is None else counter_of(entry)
            if entry is not None and call is not None and call.tracked is self:
                counter_place.take(entry)
        self._entries.clear()

    def _attach_to(self, hook: ForwardCapture, entry: torch.nn.Module, name: str | None) -> None:
        if counter_of(entry) is None:
            counter_place.put(entry, counter(hook, self, entry, name))
            self._entries.append(weakref.ref(entry))


def _state(gradient: torch.Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)


class StepCounter(counter_place.Counter):
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
    previous: Callable[..., Any] | None = counter_place.compiled_call(module)
    reference = weakref.ref(module)
    model = weakref.ref(unwrapped(module))
    is_model = unwrapped(module) is module
    is_usual = tells_plainly(unwrapped(module))
    position = hook.position
    forward = _forward_of(reference, previous)
    call = StepCounter(hook, tracked, name, previous)

    def count(*args: Any, **kwargs: Any) -> Any:
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


def _forward_of(reference: weakref.ref[torch.nn.Module], previous: Callable[..., Any] | None) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return (previous or reference()._call_impl)(*args, **kwargs)  # type: ignore[union-attr]

    return forward


def counter_of(module: torch.nn.Module) -> StepCounter | None:
    """The counter in front of a module; None if it has none."""
    found: Any = counter_place.counter_of(module)
    return found if issubclass(type(found), StepCounter) else None


@contextmanager
def set_aside(*modules: torch.nn.Module) -> Iterator[None]:
    """Take the counters off modules, and put them in front of whatever stands in their places afterwards."""
    calls = [(module, call) for module in modules if (call := counter_of(module)) is not None]
    for module, _ in calls:
        counter_place.take(module)
    try:
        yield
    finally:
        for module, call in calls:
            counter_place.put(module, counter(call.hook, call.tracked, module, call.name))
