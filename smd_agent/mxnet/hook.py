"""The MXNet hook: what a script, or the agent on its behalf, saves a run with."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from mxnet.gluon import Block, HybridBlock, Parameter
from mxnet.gluon.loss import Loss as LossBlock
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.config import env
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.hook import BaseHook
from smd_agent.framework import training_facts
from smd_agent.framework.built_in_collections import DEFAULT_SAVED
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.last_weights import LastWeights
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.tracked_model import free_name
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.framework.weights_or_biases import ParameterRoles
from smd_agent.framework.wrong_steps import WrongSteps
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import to_array
from smd_agent.mxnet.collection import BUILT_IN, Collection
from smd_agent.mxnet.environment import facts
from smd_agent.mxnet.every_step import EveryStep
from smd_agent.mxnet.hybridized import GraphTap, watch_tracing
from smd_agent.mxnet.loss_blocks import LossBlocks
from smd_agent.mxnet.lost_loads import loads
from smd_agent.mxnet.partial_loads import partial_loads
from smd_agent.mxnet.plain_access import is_sparse, name_of, values_of
from smd_agent.mxnet.saved_step import SavedStep
from smd_agent.mxnet.step_counter import Counters, TrackedBlock
from smd_agent.mxnet.trainer_watch import updates
from smd_agent.mxnet.worker import rank_and_size

if TYPE_CHECKING:
    from smd_agent.mxnet.repeated_steps import RepeatedSteps

# Collections in which nothing can be that comes from inside of a block, unless the user has widened them.
_OUTER_COLLECTIONS = {"weights", "biases", "gradients", *training_facts.COLLECTIONS}


class Hook(FrameworkHook):
    """Saves the tensors of a Gluon training run by step and mode.

    A training step reaches from the first call of a registered block to the update of its parameters; see
    ``framework.training_step``. Calls for several contexts are one step. The mode is the one set with ``set_mode``,
    GLOBAL before that.
    """

    built_in = BUILT_IN
    default_saved = DEFAULT_SAVED
    collection_class = Collection
    facts = (facts,)

    def set_up(self) -> None:
        """No block is known yet."""
        self.models: list[TrackedBlock] = []
        # Around models, and never called themselves; they have parameters of their own.
        self.owners: list[TrackedBlock] = []
        self.losses = LossBlocks(self.selection)
        self.roles = ParameterRoles(self.selection)
        self.facts_told: dict[str, str] = {}
        self.loss_guesses = LossGuesses(np)
        self.last_weights: LastWeights[NDArray] = LastWeights(lambda array: array, to_array)
        self.broken_at_end = self.last_weights.not_finite
        self.taps: WeakIdentityMap[HybridBlock, GraphTap] = WeakIdentityMap()
        self._registered: set[TrackedBlock] = set()
        self._counters = Counters(self)
        self._names: dict[str, weakref.ref[Parameter]] = {}
        self.steps: TrainingSteps = TrainingSteps(self.recorder, updates.rounds, self)
        self.steps.end_with_updates = True
        self._wrong_steps = WrongSteps(self)
        self.every_step = EveryStep(self.recorder, self._wrong_steps)
        self.steps.on_end, self.steps.on_going_on = self.every_step.ended, self.every_step.went_on
        updates.install()
        loads.install()
        partial_loads.install()
        self.recorder.requests.stopper = updates
        backward_calls.install()
        watch_tracing()
        self._repeated = self._repeated_steps()

    def count_forwards(self) -> None:
        """Count each call of a model as a step, as smdebug does; to be called before a model is known."""
        self.steps.end_with_updates = False

    def keep_bundles(self, megabytes: int) -> None:
        """Note the first step whose loss is not finite, whatever the size; 0: it is not noted."""
        self._wrong_steps.wanted = megabytes > 0

    def _repeated_steps(self) -> RepeatedSteps | None:
        order = env.get(env.REPLAY)
        if not order:
            return None
        # In no other training.
        from smd_agent.formats.replays import order_of
        from smd_agent.mxnet.repeated_steps import RepeatedSteps

        return None if order_of(order).bundle else RepeatedSteps(order, self)

    # What users call.

    def register_block(self, block: Block) -> None:
        """Save this block: its calls open the steps. Of a loss block, save what it returns.

        What is no Block, or is registered already, gets one line and is left alone.
        """
        if not is_a(block, Block):
            guard.say(f"{block!r} is not registered: it must be a mxnet.gluon.Block")
            return
        if is_a(block, LossBlock):
            self.register_loss(block)
            return
        parts = {id(part) for part in TrackedBlock(block).parts()}
        for tracked in [*self.models]:
            if tracked.is_in(parts):
                if tracked in self._registered:
                    guard.say(f"{name_of(block)} is not registered: it, or a block inside of it, is registered already")
                    return
                self.remove_model(tracked)
        self._registered.add(self.add_model(block))

    register_hook = register_block

    def register_loss(self, block: Block) -> None:
        """Save what this block returns as a loss; loss blocks of ``gluon.loss`` are saved without it."""
        if all(block is not other for other in self.losses.registered):
            self.losses.registered.append(block)

    def record_tensor_value(self, tensor_name: str, tensor_value: NDArray) -> None:
        """Save an array as ``<tensor_name>_output_<i>``, if the current step saves a collection it belongs to.

        Raises:
            AssertionError: it is no array.
        """
        if not is_a(tensor_value, NDArray):
            raise AssertionError(f"tensor_value={tensor_value!r} must be an mxnet NDArray")
        capture = self.recorder.capture
        if isinstance(capture, SavedStep):
            capture.save_given(tensor_name, tensor_value)

    # What the patches and the saved step call.

    @property
    def has_registered(self) -> bool:
        """True if the program has registered blocks itself."""
        return bool(self._registered)

    def take_over(self, other: BaseHook) -> None:
        """Save the blocks that were found for another hook."""
        for tracked in other.models if isinstance(other, Hook) and not other.has_registered else ():
            if (block := tracked.model) is not None:
                self.add_model(block)

    def add_model(self, block: Block) -> TrackedBlock:
        """Count the steps of a block and save them."""
        self.models = [tracked for tracked in self.models if not tracked.is_let_go]
        tracked = TrackedBlock(block)
        if all(other.last != self.step for other in self.models):
            # The blocks of the open step are gone; this one's first call is no part of it.
            tracked.last = self.step
            self.steps.end()
        self.models.append(tracked)
        self.loss_guesses.begin_anew()
        self.training_begins_anew()
        if self.steps.end_with_updates:
            updates.follow(self)
        self.every_step.follow()
        for known in self.models:
            # From now on it is asked whether they have changed.
            known.was_updated()
        self._counters.attach(tracked)
        return tracked

    def go_on_with(self, tracked: TrackedBlock) -> None:
        """A block is called to be trained that was not known: perhaps the step that has just ended goes on with it."""
        others = {id(one) for other in self.models if other is not tracked for _, one in other.parameters()}
        if tracked.last != self.step and updates.goes_on_with({id(one) for _, one in tracked.parameters()} - others):
            self.steps.goes_on()

    def add_owner(self, block: Block) -> None:
        """Save what a block owns of which only parts are called."""
        if all(block is not owner.model for owner in self.owners):
            self.owners = [owner for owner in self.owners if owner.model is not None]
            self.owners.append(TrackedBlock(block))
            if self.steps.end_with_updates:
                # What trains it may be another Trainer.
                updates.follow(self)

    def count_call(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts one call that has begun before its block had a counter, and goes on with ``run``."""
        newest = self.position.newest
        rest = block_calls.shown_to_newcomers(run)

        def captured(block: Block, *args: Any, **kwargs: Any) -> Any:
            capture = self.recorder.capture
            if isinstance(capture, SavedStep) and capture.step <= newest:
                # It was open already, and the call has passed it by.
                capture.add_models()
                return capture.call(run, block, args, kwargs)
            return rest(block, *args, **kwargs)

        return self._counters.around(unseen(captured))

    def trained_parameters(self) -> Iterator[Parameter]:
        """The parameters of all known blocks."""
        known = (*self.models, *self.owners)
        return (parameter for tracked in known for _, parameter in tracked.parameters())

    def were_updated(self) -> bool:
        """True if parameters of blocks that a Trainer has been made for have changed since the last time."""
        if self.steps.pass_ends_step:
            return False
        # All are asked, as each takes note of its state.
        changed = [tracked.was_updated() for tracked in self.models]
        return any(changed)

    @STEPS.fence("looking at a block's call amid a training step", again=True)
    def begins_amid_training(self, train: bool, again: bool) -> bool:
        """True if a call begins a step while an update is awaited; see ``BlockSteps``."""
        return self.steps.training_call() if train else self.steps.evaluation_call(again)

    @STEPS.fence("going on with a training step", again=True)
    def training_goes_on(self) -> None:
        """Something of the training step that waits for an evaluation to end comes up."""
        if self.recorder.interrupted:
            self.steps.go_on()

    def remove_model(self, tracked: TrackedBlock) -> None:
        """Leave a block alone again."""
        self._counters.detach(tracked)
        self.models.remove(tracked)

    def parameters(self) -> list[tuple[str, Parameter]]:
        """All parameters, each once, with the names they are saved under: their own, made unique where two have one."""
        found = {
            id(parameter): (name, parameter)
            for tracked in (*self.models, *self.owners)
            for name, parameter in tracked.parameters()
        }
        return [(self._name_of(parameter, name, found), parameter) for name, parameter in found.values()]

    def _name_of(self, parameter: Parameter, name: str, known: Container[int]) -> str:
        def is_anothers(candidate: str) -> bool:
            other = self._names.get(candidate, lambda: None)()
            # A parameter lives on with its Trainer, after its block has gone, until the garbage collector runs.
            return other is not None and other is not parameter and id(other) in known

        free = free_name(name, is_anothers)
        self._names[free] = weakref.ref(parameter)
        return free

    def may_want_tensors(self) -> bool:
        """True if the current step may save others than those of its facts."""
        return self._may_want_others_than({*training_facts.COLLECTIONS})

    def may_want_inside(self, block: HybridBlock) -> bool:
        """True if the current step may save something from inside of a block."""
        return self._may_want_others_than(_OUTER_COLLECTIONS)

    def may_want_inputs(self) -> bool:
        """True if the current step may save the input of a block."""
        return self._may_want_others_than(_OUTER_COLLECTIONS | {CollectionKeys.LOSSES})

    @STEPS.fence("opening a step", then=FrameworkHook.give_up_step)
    def start_step(self) -> None:
        """Decide about a step that is due, and have it saved."""
        if self._repeated is not None:
            self._repeated.step_begins()
        if not self.recorder.open_step():
            return
        capture = self.recorder.capture = SavedStep(self)
        capture.open()

    def _may_want_others_than(self, names: set[str]) -> bool:
        due = self.recorder.collections_due() - names
        get = self.collection_manager.get
        return bool(due) or any(get(name).include_regex != list(BUILT_IN[name]) for name in names)

    # What BaseHook leaves to us.

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        self.every_step.settle()
        super().finish(end_marker)

    def left_weights(self) -> Mapping[str, NDArray]:
        """The parameters by name, as the last update has left them; none where the program has set any since."""
        if updates.were_set or self.steps.pass_ends_step or not self.position.ends_with_update:
            return {}
        found = ((name, values_of(parameter)) for name, parameter in self.parameters() if not is_sparse(parameter))
        return {name: values[0] for name, values in found if values}

    def begin_anew(self) -> None:
        """Go on as a run of its own, in a process that a fork has made; the step that was open is its parent's."""
        self.every_step.drop()
        super().begin_anew()

    def disable(self) -> None:
        """Save nothing more and leave the blocks alone."""
        super().disable()
        updates.leave(self)
        for tracked in self.models:
            self._counters.detach(tracked)

    def to_array(self, value: Any) -> tuple[npt.NDArray[Any], str | None] | None:
        """An array of MXNet as one of NumPy that may share its memory."""
        if is_a(value, NDArray):
            return to_array(value)
        return super().to_array(value)

    def worker(self) -> tuple[int, int]:
        """Rank and number of workers, as Horovod knows them when the first step is saved."""
        return rank_and_size()

    def __reduce__(self) -> tuple[Any, ...]:
        # A model that holds the hook pickles and copies; the copy's hook is an empty shell.
        return (object.__new__, (type(self),))
