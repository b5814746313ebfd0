"""One more callback for the functions of a library that train: the one that saves the rounds."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.boosting.hook import BoostingHook
from smd_agent.framework.boosting.library import Training
from smd_agent.framework.boosting.rounds import Rounds
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.framework.replaced_functions import Function, is_ours, replace_everywhere

HookClass = type[BoostingHook[Any]]

# What is known of a training by the arguments of its call, which come by name and are not to be walked.
Describe = Callable[[Mapping[str, Any]], Training[Any]]


def watch_calls(library: ModuleType, targets: Mapping[str, Describe], trainings: Trainings) -> None:
    """Have every training of a library saved.

    The library's own modules call its functions under names that were bound while it was imported, so every such name
    is given the new function.

    Args:
        library: the imported package.
        targets: by dotted path of the function, what a call of it tells. It must take ``callbacks``.
        trainings: gives each call its callbacks.
    """
    for path, describe in targets.items():
        home, _, name = path.rpartition(".")
        for function in _stand_ins(library, getattr(sys.modules[home], name), getattr(library, name)):
            parameters = [*inspect.signature(function).parameters]
            if "callbacks" not in parameters:
                line = (
                    f"{path} was wrapped before the agent came, by what hides its arguments: such calls are not saved"
                )
                guard.say_once(("hidden arguments", path), line)
                continue
            make = partial(_with_callbacks, parameters, describe, trainings)
            replace_everywhere(function, make, why="the rounds of a training are saved by a callback")


def _stand_ins(library: ModuleType, *functions: Function) -> list[Function]:
    """A function as it was defined, and what somebody has put around it under one of its names before us."""
    found = {id(function): function for function in functions}
    origin = inspect.unwrap(functions[0])
    for path, module in [*sys.modules.items()]:
        if path.partition(".")[0] == library.__name__:
            for value in [*vars(module).values()]:
                if inspect.isfunction(value) and inspect.unwrap(value) is origin:
                    found[id(value)] = value
    return [function for function in found.values() if not is_ours(function)]


def _with_callbacks(parameters: list[str], describe: Describe, trainings: Trainings, function: Function) -> Function:
    position = parameters.index("callbacks")

    def train(*args: Any, **kwargs: Any) -> Any:
        # Arguments that the signature has no place for are the function's own to complain about.
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        callbacks = given.get("callbacks")
        if callbacks is None:
            callbacks = []
        if in_class(type(callbacks), "__iter__") is None:
            return function(*args, **kwargs)
        # The library walks through them once, too, and gets the list.
        callbacks = given["callbacks"] = [*callbacks]
        ours = trainings.begin(describe, given, callbacks)
        if ours is not None:
            callbacks = [*ours.callbacks(), *callbacks]
        if position < len(args):
            args = (*args[:position], callbacks, *args[position + 1 :])
        else:
            kwargs["callbacks"] = callbacks
        try:
            result = function(*args, **kwargs)
        finally:
            if ours is not None:
                trainings.end(ours)
        return result

    return train


class Trainings:
    """Gives each training of the process what saves its rounds; one training at a time.

    Args:
        load: imports the library's class of hooks, called once the program trains.
        make: makes a hook of this class where the script has made none; None if there cannot be one.
        every_worker: every worker of a distributed training saves, not only the first.
    """

    def __init__(
        self,
        load: Callable[[], HookClass],
        make: Callable[[HookClass], BoostingHook[Any] | None],
        every_worker: bool,
    ) -> None:
        self._load = load
        self._make = make
        self._every_worker = every_worker
        self._running = threading.Lock()
        self._source: HookSource[BoostingHook[Any]] | None = None

    @STEPS.fence("looking at a training", again=True)
    def begin(self, describe: Describe, given: Mapping[str, Any], callbacks: list[Any]) -> Rounds | None:
        """The callback for a training that is called with these arguments; None to leave it alone."""
        hook_class = self._load()
        training = describe(given)
        for callback in callbacks:
            if is_a(callback, Rounds):
                # A wrapper of the program's has come between two functions of ours: it is one training.
                return None
            if is_a(callback, hook_class):
                callback.expect(training)
                return None
        if not self._every_worker and hook_class.rank_and_size()[0] != 0:
            return None
        if not self._running.acquire(blocking=False):
            line = "a training that runs inside or beside another one is not saved"
            guard.say_once("two trainings at once", line)
            return None
        rounds = None
        try:
            if self._source is None:
                self._source = HookSource(hook_class, lambda: self._make(hook_class))
            hook = self._source.hook()
            rounds = None if hook is None else hook.begin_training(training)
        finally:
            if rounds is None:
                # Where this failed, it is tried again.
                self._running.release()
        return rounds

    def end(self, rounds: Rounds) -> None:
        """The training that was begun has ended, or failed."""
        rounds.close()
        self._running.release()
