"""The PyTorch hook: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy.typing as npt
import torch

from smd_agent import guard
from smd_agent.config import env
from smd_agent.config.settings import DEFAULT_BUNDLE_MEGABYTES
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.hook import BaseHook
from smd_agent.core.locking import locked
from smd_agent.errors import SMDebugError
from smd_agent.framework.built_in_collections import DEFAULT_SAVED
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.tracked_model import free_name
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.arrays import to_array
from smd_agent.pytorch.blame.culprit import Culprits
from smd_agent.pytorch.bundles.keeper import BundleKeeper
from smd_agent.pytorch.capture.last_weights import LastWeights
from smd_agent.pytorch.capture.loss_names import LossNames
from smd_agent.pytorch.capture.model_calls import ModelCalls
from smd_agent.pytorch.capture.saved_step import SavedStep
from smd_agent.pytorch.capture.trained_losses import TrainedLosses
from smd_agent.pytorch.collection import BUILT_IN, Collection
from smd_agent.pytorch.device import free_memory
from smd_agent.pytorch.device.graph_captures import graph_captures
from smd_agent.pytorch.device.late_values import LateValues
from smd_agent.pytorch.environment import facts
from smd_agent.pytorch.model.first_call import FirstCall
from smd_agent.pytorch.model.gone_models import GoneModels
from smd_agent.pytorch.model.kept_states import kept_states
from smd_agent.pytorch.model.known_models import KnownModels
from smd_agent.pytorch.model.partial_loads import partial_loads
from smd_agent.pytorch.model.step_counter import StepCounter, attach, detach
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.wrappers import class_name, named_layers, unwrapped
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.patching import Installed
from smd_agent.pytorch.plain_access import parts
from smd_agent.pytorch.series.clip_norms import clipping
from smd_agent.pytorch.series.every_step import EveryStep
from smd_agent.pytorch.series.roots import passes
from smd_agent.pytorch.stopping import Stopper
from smd_agent.pytorch.torch_compile import leave_uncompiled
from smd_agent.pytorch.tracing import is_opaque
from smd_agent.pytorch.training_threads import TrainingThreads
from smd_agent.pytorch.worker import feeds_a_loader, rank_and_size


class Hook(KnownModels):
    """Saves the tensors of a PyTorch training run by step and mode.

    A training step reaches from the first forward of a registered model to the update of its parameters; see
    ``framework.training_step``. The mode is the one set with ``set_mode``, GLOBAL before that.
    """

    built_in = BUILT_IN
    default_saved = DEFAULT_SAVED
    collection_class = Collection
    facts = (facts,)

    def set_up(self) -> None:
        """No model is known yet."""
        self.models = []
        self.gone = GoneModels(updates.marks, self.step_ended)
        self.have_moved = False
        self.over_at = -1
        self.registered_losses: list[torch.nn.Module] = []
        self._registered: set[TrackedModule] = set()
        self.roles = ParameterRoles(self.selection)
        self.loss_names = LossNames(self.selection)
        self.trained_losses = TrainedLosses()
        self.facts_told: dict[str, str] = {}
        self.loss_guesses = LossGuesses(torch)
        self.last_weights = LastWeights()
        kept_states.follow(updates)
        self.broken_at_end = self.last_weights.not_finite
        self.untold_at_end = partial_loads.left
        self.recorder.late = LateValues(self.recorder)
        graph_captures.follow(self.recorder)
        self.recorder.requests.stopper = Stopper()
        self._thread = 0
        self.threads: TrainingThreads = TrainingThreads(self._keep_own_models)
        self.left_out = self.recorder.left_out = self.threads.left_out
        self.steps: TrainingSteps = TrainingSteps(self.recorder, updates.rounds, self)
        self.steps.end_with_updates = True
        self.names_culprits = False
        self.first_call = FirstCall()
        self.every_step = EveryStep(self.recorder, lambda: self.models, self.threads, updates.in_progress)
        self._keeper = self.every_step.culprits = BundleKeeper(self, self.first_call)
        self.recorder.requests.keeper = self._keeper
        self.keep_bundles(DEFAULT_BUNDLE_MEGABYTES)
        order = env.get(env.REPLAY)
        if order:
            self._replay(order)
        self.steps.on_end, self.steps.on_going_on = self.every_step.ended, self.every_step.went_on
        self._step_clock = self.position.clock
        # Whether the next backward pass belongs to a step that is yet to be opened.
        self.pass_opens_step: Callable[[], bool] = bool

    def count_forwards(self) -> None:
        """Count each call of a model as a step, as smdebug does; to be called before a model is known."""
        self.steps.end_with_updates = False

    def name_culprits(self) -> None:
        """Name what makes a loss or gradients not finite: models keep their last call; before a model is known."""
        self.names_culprits = True
        self._keeper.culprits = Culprits(self)

    def keep_bundles(self, megabytes: int) -> None:
        """Keep what the first step that goes wrong was given, up to this size; 0: nothing; before a model is known."""
        self._keeper.most = megabytes << 20

    def _replay(self, order: str) -> None:
        # In no other training.
        from smd_agent.formats.replays import order_of
        from smd_agent.pytorch.bundles.replayed import Replay

        if not order_of(order).bundle:
            # It is for another framework, with which the program trains, too.
            return
        replay = Replay(order, self.recorder)
        self.first_call, self.every_step.culprits = replay.calls, replay

    # What users call.

    def register_module(self, module: torch.nn.Module) -> None:
        """Save this model: its forward opens the steps. One that is registered already stays so.

        Raises:
            SMDebugError: it is no Module.
            AssertionError: another model is registered already with which it shares modules.
        """
        if not is_a(module, torch.nn.Module):
            raise SMDebugError(f"Module type {type(module).__name__} must be type torch.nn.Module")
        if any(tracked.module is module for tracked in self._registered):
            return
        inside = {id(part) for part in parts(module)}
        for tracked in [*self.models]:
            if tracked.is_in(inside):
                if tracked in self._registered:
                    raise AssertionError(f"Don't register module={module} twice: a part of it is registered already")
                self.remove_model(tracked)
        self._registered.add(self.add_model(module))

    register_hook = register_module

    def register_loss(self, loss_module: torch.nn.Module) -> None:
        """Save what this loss module returns; loss modules of ``torch.nn`` are saved without it.

        Raises:
            AssertionError: it is no Module.
        """
        if not is_a(loss_module, torch.nn.Module):
            raise AssertionError(f"loss_module={loss_module} must be a torch.nn.Module")
        if all(loss_module is not other for other in self.registered_losses):
            self.registered_losses.append(loss_module)

    def record_tensor_value(self, tensor_name: str, tensor_value: torch.Tensor) -> None:
        """Save a tensor as ``<tensor_name>_output_<i>``, if the current step saves a collection it belongs to.

        Raises:
            AssertionError: it is no tensor.
        """
        if not is_a(tensor_value, torch.Tensor):
            raise AssertionError(f"tensor_value={tensor_value!r} must be a torch.Tensor")
        if self._saved_step is not None:
            self._saved_step.save_recorded(tensor_name, tensor_value)

    # What the patches and the saved step call.

    @property
    def has_registered(self) -> bool:
        """True if the program has registered models itself."""
        return bool(self._registered)

    def take_over(self, other: BaseHook) -> None:
        """Save the models that were found for another hook."""
        for tracked in other.models if isinstance(other, Hook) and not other.has_registered else ():
            if (module := tracked.module) is not None:
                self.add_model(module, tracked.owner)

    def add_model(
        self, module: torch.nn.Module, owner: torch.nn.Module | None = None, counted: bool = True
    ) -> TrackedModule:
        """Count the steps of a model and save them.

        Args:
            module: the outermost module that is called.
            owner: the module whose part the model is, if its names are to be those that it has there.
            counted: whether its calls open steps; else ``attach`` can be called later.
        """
        self.models = [tracked for tracked in self.models if tracked.model is not None]
        model = unwrapped(module)
        path = next((name for name, part in named_layers(owner) if part is model), "") if owner is not None else ""
        if not path:
            owner = None
        siblings = [tracked for tracked in self.models if owner is not None and tracked.owner is owner]
        taken = {tracked.names.title for tracked in self.models}
        name = class_name(module if owner is None else owner)
        title = siblings[0].names.title if siblings else free_name(name, taken.__contains__)
        first = len(siblings) == len(self.models)
        tracked = TrackedModule(module, title, first, owner, path)
        if all(other.last != self.step for other in self.models):
            # The models of the open step are gone; this one's first forward is no part of it.
            tracked.last = self.step
            self.steps.end()
        self.models.append(tracked)
        if self.saves_last:
            self.gone.watch(tracked)
        self.loss_guesses.begin_anew()
        self.training_begins_anew()
        self.have_moved = False
        if self.steps.end_with_updates:
            updates.follow(self)
        if self.recorder.series.wanted:
            for watched in (updates, passes, clipping):
                watched.tell(self.every_step)
            self._keeper.begin()
        for known in self.models:
            # From now on it is asked whether they have changed.
            known.was_updated()
        if counted:
            attach(tracked, self, module)
        return tracked

    def remove_model(self, tracked: TrackedModule) -> None:
        """Leave a model alone again."""
        detach(tracked)
        self.models.remove(tracked)

    def go_on_with(self, tracked: TrackedModule) -> None:
        """A model is called to be trained that was not known: perhaps the step that has just ended goes on with it."""
        others = {id(one) for other in self.models if other is not tracked for _, one in other.parameters()}
        if tracked.last != self.step and updates.goes_on_with({id(one) for _, one in tracked.parameters()} - others):
            self.steps.goes_on()
        elif not self.position.awaits_update:
            self.over_at = self.step

    def follow_wrapper(self, module: torch.nn.Module) -> None:
        """A wrapper was put around a model: if it is one of ours, its calls are the model's from now on."""
        for tracked in self.models:
            if tracked.model is not None and unwrapped(module) is tracked.model:
                attach(tracked, self, module)

    def begin_training_step(self) -> None:
        """Close the open step and begin a training step that no call of a model has shown."""
        if self.position.open:
            self.finish_step()
        if self.steps.begin(self.position.train):
            self.start_step()

    @STEPS.fence("looking at a model's call amid a training step", again=True)
    @locked
    def begins_amid_training(self, tracked: TrackedModule, train: bool) -> bool:
        """True if a call, to train or to evaluate, begins a step while an update is awaited."""
        if not train:
            return self.steps.evaluation_call(tracked.last == self.step)
        begins = self.steps.training_call()
        if self.steps.take_unopened() and not begins:
            self.start_step()
        return begins

    @property
    def amid_training(self) -> bool:
        """True if a training step waits for an evaluation to end."""
        return self.recorder.interrupted is not None

    @STEPS.fence("going on with a training step", again=True)
    @locked
    def training_goes_on(self) -> None:
        """Something of the training step that waits for an evaluation to end comes up."""
        if self.amid_training:
            self.steps.go_on()

    def regexes_changed(self) -> bool:
        """True if a built-in collection has got regexes or names of the user's."""
        return any(
            self.collection_manager.get(name).include_regex != list(regexes)
            for name, regexes in BUILT_IN.items()
            if regexes
        )

    @STEPS.fence("opening a step", then=FrameworkHook.give_up_step)
    @locked
    def start_step(self) -> None:
        """Decide about a step that is due, and have it saved."""
        if not self.threads.may_begin():
            # The next call in the thread whose steps are saved is this step.
            self.position.take_back()
            return
        if self.recorder.capture is not None:
            # Another thread has opened it since this one looked.
            self.recorder.end_step()
        if _opaque_now() or not free_memory.is_left():
            self.steps.leave_unopened()
            return
        if feeds_a_loader():
            self.disable()
            return
        self._settle_modules()
        self.recorder.output.meet_workers()
        if not self.recorder.open_step():
            return
        self.threads.begin()
        self._step_clock = self.position.clock
        capture = self.recorder.capture = SavedStep(self)
        capture.open()

    @STEPS.fence("closing a step")
    @locked
    def finish_step(self) -> None:
        """Close the open step."""
        if self.threads.may_begin():
            self.recorder.end_step()

    @property
    def _saved_step(self) -> SavedStep | None:
        capture = self.recorder.capture
        return capture if isinstance(capture, SavedStep) else None

    def _settle_modules(self) -> None:
        names = {id(layer): name for tracked in self.models for name, layer in tracked.layers()}
        modules = [(tracked.module, tracked.names.model) for tracked in self.models]
        names.update({id(module): name for module, name in modules if module is not None})
        collections = [c for c in self.get_collections().values() if isinstance(c, Collection)]
        settled = [collection for collection in collections if collection.settle_modules(names)]
        if settled:
            self.selection.changed()

    @unseen
    def nested_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the forward of a model that is called inside of another, in a step that is saved."""
        if self._thread != threading.get_ident():
            if self._thread == 0 and self.threads.is_opener:
                # The model around it is another thread's.
                return self.captured_forward(call, args, kwargs)
            self.threads.calls_models()
            line = "models are called in several threads at once: of calls at the same time only the first is a step"
            guard.say_once("threads", line)
        elif self._saved_step is not None and not call.tracked.calls.busy:
            return self._saved_step.model_calls.forward(call, args, kwargs)
        return call.forward(*args, **kwargs)

    @property
    def in_this_thread(self) -> bool:
        """True if the call that is captured is one of this thread."""
        return self._thread == threading.get_ident()

    @unseen
    def captured_forward(self, call: StepCounter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a model's forward in a step that is saved."""
        if _opaque_now() or not self._take_call(call.tracked) or self._saved_step is None:
            return call.forward(*args, **kwargs)
        self._thread = threading.get_ident()
        try:
            return self._saved_step.model_calls.forward(call, args, kwargs)
        finally:
            self._thread = 0

    @STEPS.fence("looking at a model's call", again=True)
    @locked
    def _take_call(self, tracked: TrackedModule) -> bool:
        tracked.calls.thread = threading.get_ident()
        tracked.calls.any = True
        if not self.threads.call():
            return False
        step = self._saved_step
        if step is not None and tracked in step.called and not self.position.awaits_update:
            # Calls in other threads have kept this one from being counted as the step that it is.
            self._begin_uncounted_step(step)
            tracked.last = self.position.step
            step = self._saved_step
        if step is not None:
            step.called.add(tracked)
        return True

    def _begin_uncounted_step(self, last: SavedStep) -> None:
        position = self.position
        self.recorder.end_step()
        due = (
            position.begin(self._step_clock)
            if position.step == last.step
            else position.clock.step >= position.clock.due
        )
        if due:
            self.start_step()

    @locked
    def _keep_own_models(self) -> None:
        if self._saved_step is not None:
            self._saved_step.keep_called_models()

    # What BaseHook leaves to us.

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        self.every_step.culprits.run_ends()
        self.every_step.settle()
        super().finish(end_marker)
        self.gone.forget()

    def left_weights(self) -> Mapping[str, torch.Tensor]:
        """The parameters by name, as the last update has left them; none where that cannot be told."""
        if not (self.threads.may_begin() and free_memory.can_be_asked() and free_memory.is_left()):
            return {}
        self.threads.begin()
        return super().left_weights()

    def begin_anew(self) -> None:
        """Go on as a run of its own, in a process that a fork has made; the step that was open is its parent's."""
        self.every_step.drop()
        super().begin_anew()

    def disable(self) -> None:
        """Save nothing more and leave the models alone."""
        super().disable()
        self.every_step.culprits.step_ended()
        self.first_call.end()
        for tracked in self.models:
            detach(tracked)

    def to_array(self, value: Any) -> tuple[npt.NDArray[Any], str | None] | None:
        """A tensor as an array that may share its memory."""
        if is_a(value, torch.Tensor):
            return to_array(value)
        return super().to_array(value)

    def worker(self) -> tuple[int, int]:
        """Rank and number of ranks, as far as they are known; see ``rank_and_size``."""
        return rank_and_size()

    def __reduce__(self) -> tuple[Any, ...]:
        # A model that holds the hook pickles and copies; the copy's hook is an empty shell.
        return (object.__new__, (type(self),))


def _opaque_now() -> bool:
    opaque = is_opaque()
    if opaque:
        guard.say_once("opaque", "a call in which the model is traced or transformed is not saved")
    return opaque


# A compiled model calls the one inside of it, which may have a counter too.
_CALLED_BY_MODELS: tuple[Any, ...] = (
    Hook.nested_forward,
    Hook.captured_forward,
    vars(Hook)["in_this_thread"].fget,
    vars(Hook)["_saved_step"].fget,
    ModelCalls.forward,
)
for _function in _CALLED_BY_MODELS:
    leave_uncompiled(_function)
# All fenced functions have the first one's code.
_WITH_CALLEES: tuple[Any, ...] = (Hook.start_step, TrainingThreads.left_out, SavedStep._left_out, Installed.close)
for _function in _WITH_CALLEES:
    leave_uncompiled(_function, with_callees=True)
