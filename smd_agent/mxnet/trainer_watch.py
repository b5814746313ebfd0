"""Watch on the Trainers of the process: their updates end the training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from mxnet.gluon import Parameter, Trainer

from smd_agent.core.clock import RunPosition
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.optimizer_turns import UpdateRounds
from smd_agent.framework.replaced_functions import Function, is_replaced, replace
from smd_agent.framework.series_pauses import Paused, ToldUpdates
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls
from smd_agent.mxnet.plain_access import parameters_of, trainer_of


class Trained(Protocol):
    """Has the steps that updates end; a hook."""

    @property
    def steps(self) -> TrainingSteps:
        """The steps of its training."""

    def trained_parameters(self) -> Iterable[Parameter]:
        """The parameters of the blocks that it knows."""


class UpdateListener(Paused, Protocol):
    """Is told of every update, in saved steps and in others; it raises nothing."""

    def before_update(self, trainer: Any) -> Callable[[], object] | None:
        """A Trainer is about to update; the result is called when it has done so, or failed to."""

    def after_update(self, trainer: Any, ends: bool) -> None:
        """A Trainer has updated its parameters; ``ends``: and with that the current training step has ended."""


class _Updates(ToldUpdates[UpdateListener]):
    """The one of the process.

    Attributes:
        rounds: of the Trainers.
        end: called before the next update, which it keeps from taking place by raising; None if it is to take place.
        were_set: whether the program has given a parameter other values since the last update.
    """

    def __init__(self) -> None:
        super().__init__()
        self.end: Callable[[], object] | None = None
        self.were_set = False
        self.rounds = UpdateRounds(self._takes_part)
        self._trained: Trained | None = None
        # Those of whose parameters a block has been called, if only to evaluate it.
        self._in_use: WeakIdentityMap[Any, bool] = WeakIdentityMap()
        # By Trainers, how often they had updated before there was one.
        self._missed: WeakIdentityMap[Any, int] = WeakIdentityMap()
        # Of its steps.
        self._position: RunPosition | None = None
        self._unwatch: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to take note of Trainers; called again, do nothing."""
        if not is_replaced(Trainer, "_update"):
            why = "a Trainer that is made may take turns in a step"
            replace(Trainer, "__init__", self._wrap_init, why=why, then=self._made)
            # Trainer.step and Trainer.update both come by here.
            replace(Trainer, "_update", self._wrap_update, why="an update ends a step", then=self._updated)
            why = "weights that the program has set are not those that a training has left"
            replace(Parameter, "set_data", self._wrap_set_data, why=why)

    def follow(self, trained: Trained) -> None:
        """Have the updates that come end the steps of this hook, which has got a block."""
        self._trained = trained
        self._position = trained.steps.position
        self._position.unsure = True
        self._look_at_trainers()

    def evaluated(self, parameters: Iterable[Parameter]) -> None:
        """A block that nothing has trained yet has been called to evaluate it."""
        for trainer in map(trainer_of, parameters):
            if trainer is not None:
                self._in_use.set(trainer, True)

    def after_step(self) -> str:
        """No loop of Gluon's is ended from outside."""
        return ""

    def is_ignored(self) -> bool:
        """Nobody was asked."""
        return False

    def before_update(self, end: Callable[[], object]) -> bool:
        """Have ``end`` called before the next update."""
        self.end = end
        return True

    def take_missed(self, parameters: Iterable[Parameter]) -> int:
        """Number of updates of these parameters before anybody followed; asked once."""
        trainers = [trainer for trainer in map(trainer_of, parameters) if trainer is not None]
        found = max((self._missed.get(trainer) or 0 for trainer in trainers), default=0)
        for trainer in trainers:
            self._missed.set(trainer, 0)
        return found

    def goes_on_with(self, own: set[int]) -> bool:
        """True if a round that has ended goes on with a block that alone has these parameters, and is called now."""
        return self.rounds.go_on(lambda trainer: not own.isdisjoint(_ids(trainer)))

    def leave(self, trained: Trained) -> None:
        """Updates end the steps of this hook no more."""
        if self._trained is trained:
            self._trained = self._position = None
            self._end_watch()

    def _look_at_trainers(self) -> None:
        """Take note of what trains the known blocks; if nothing does, every backward pass ends a step."""
        if self._trained is None:
            return
        own = {id(parameter) for parameter in self._trained.trained_parameters()}
        # A Trainer lives on with its parameters until the garbage collector runs.
        self.rounds.keep(lambda trainer: not own.isdisjoint(_ids(trainer)))
        trainers = {id(trainer): trainer for trainer in map(trainer_of, self._trained.trained_parameters())}
        trainers.pop(id(None), None)
        for trainer in trainers.values():
            self.rounds.add(trainer)
        self._trained.steps.pass_ends_step = not trainers
        if not trainers and self._unwatch is None:
            self._unwatch = backward_calls.watch(self._around_backward)
        elif trainers:
            self._end_watch()

    def _end_watch(self) -> None:
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch()

    @unseen
    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        result = run()
        self._passed()
        return result

    @STEPS.fence("looking at the end of a backward pass", again=True)
    def _passed(self) -> None:
        if self._trained is not None:
            self._trained.steps.passed()

    def _wrap_init(self, original: Function) -> Function:
        def make_trainer(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(trainer, *args, **kwargs)
            self._made(trainer)
            return result

        return make_trainer

    @STEPS.fence("taking note of a Trainer", again=True)
    def _made(self, trainer: Any) -> None:
        self.rounds.add(trainer)
        if self._unwatch is not None:
            self._look_at_trainers()

    def _wrap_update(self, original: Function) -> Function:
        rounds = self.rounds

        def update(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            if self.end is not None:
                end, self.end = self.end, None
                end()
            done = None if self.listener is None else self.listener.before_update(trainer)
            try:
                result = original(trainer, *args, **kwargs)
                self.were_set = False
            finally:
                if done is not None:
                    done()
            listener, position = self.listener, self._position
            usual = position is not None and rounds.only == id(trainer) and position.clock is position.train
            if position is not None and usual and not position.unsure:
                # As ``TrainingSteps.updated`` does it.
                position.awaits_update = False
                position.updated = True
                if listener is not None:
                    listener.after_update(trainer, True)
                elif self.rest:
                    self.count_rest()
            else:
                if listener is not None:
                    listener.after_update(trainer, False)
                self._updated(trainer)
            return result

        return update

    def _wrap_set_data(self, original: Function) -> Function:
        def set_data(parameter: Any, *args: Any, **kwargs: Any) -> Any:
            self.were_set = True
            return original(parameter, *args, **kwargs)

        return set_data

    @STEPS.fence("looking at a Trainer's update", again=True)
    def _updated(self, trainer: Any) -> None:
        if self._trained is None:
            self._missed.set(trainer, (self._missed.get(trainer) or 0) + 1)
            return
        self._end_watch()
        self._trained.steps.updated(trainer)
        if self.rest and self._trained.steps.position.updated:
            # Updates do not end steps one by one any more.
            self.go_on()

    def _takes_part(self, candidate: Any, updating: Any) -> bool:
        own = _ids(candidate)
        if self._trained is None or not own.isdisjoint(_ids(updating)):
            return False
        # A generator's first samples may be drawn without gradients, for its critic.
        in_use = self._in_use.get(candidate) is True
        return in_use or any(id(parameter) in own for parameter in self._trained.trained_parameters())


def _ids(trainer: Any) -> set[int]:
    return {id(parameter) for parameter in parameters_of(trainer)}


updates = _Updates()
