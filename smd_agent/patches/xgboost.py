"""Where an XGBoost run is noticed: ``train`` and ``cv`` get one more callback.

Estimators, Dask and Spark workers call the same two functions, each under a name of its own that was bound while
XGBoost was imported; so every such name is given the new function.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from smd_agent import guard, session
from smd_agent.patches.hook_of_run import make_hook, tell_if_nothing, wanted_settings

if TYPE_CHECKING:
    from smd_agent.config.settings import HookSettings
    from smd_agent.xgboost.hook import Hook
    from smd_agent.xgboost.products import Training
    from smd_agent.xgboost.rounds import Rounds

OLDEST = "1.7"
DEFAULT_SAVE_INTERVAL = 10


def apply(xgboost: ModuleType) -> None:
    """Have the trainings of the program saved."""
    settings = wanted_settings(DEFAULT_SAVE_INTERVAL)
    if settings is None:
        return
    if not hasattr(xgboost, "collective"):
        guard.say(f"xgboost {xgboost.__version__} is not supported (oldest is {OLDEST}): nothing will be captured")
        return
    trainings = _Trainings(settings)
    for name in ("train", "cv"):
        function = getattr(xgboost, name)
        _rebind(function, _with_callback(function, trainings, folds=name == "cv"))
    tell_if_nothing("a call of xgboost.train or xgboost.cv", settings, lambda: False)


def _rebind(old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            for name in [name for name, value in list(names.items()) if value is old]:
                names[name] = new


def _with_callback(function: Callable[..., Any], trainings: _Trainings, folds: bool) -> Callable[..., Any]:
    parameters = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # Arguments that the signature has no place for are the function's own to complain about.
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        callbacks = given.get("callbacks") or []
        if not isinstance(callbacks, Iterable):
            return function(*args, **kwargs)
        ours = trainings.begin({**given, "callbacks": (callbacks := [*callbacks])}, folds)
        if ours is not None:
            callbacks = [ours, *callbacks]
        position = parameters.index("callbacks")
        if position < len(args):
            args = (*args[:position], callbacks, *args[position + 1 :])
        else:
            kwargs["callbacks"] = callbacks
        try:
            return function(*args, **kwargs)
        finally:
            if ours is not None:
                trainings.end(ours)

    return wrapper


class _Trainings:
    """Gives each training of the process its callback; one at a time."""

    def __init__(self, settings: HookSettings) -> None:
        self._settings = settings
        self._refused = False
        self._running = threading.Lock()

    @session.fence("looking at a training")
    def begin(self, given: Mapping[str, Any], folds: bool) -> Rounds | None:
        """The callback for a training that is called with these arguments; None to leave it alone."""
        from smd_agent.xgboost.hook import Hook
        from smd_agent.xgboost.rounds import Rounds
        from smd_agent.xgboost.worker import rank_and_size

        training = _describe(given, folds)
        for callback in given["callbacks"]:
            if isinstance(callback, Hook):
                callback.expect(training)
                return None
        if self._settings.include_workers == "one" and rank_and_size()[0] != 0:
            return None
        if not self._running.acquire(blocking=False):
            line = "a training that runs inside or beside another one is not saved"
            guard.say_once("two trainings at once", line)
            return None
        hook = self._hook_in_use()
        if hook is None:
            self._running.release()
            return None
        return Rounds(hook, hook.completed(training))

    def end(self, rounds: Rounds) -> None:
        """The training that was begun has ended, or failed."""
        rounds.close()
        self._running.release()

    def _hook_in_use(self) -> Hook | None:
        from smd_agent.xgboost.hook import Hook

        existing = session.current()
        if isinstance(existing, Hook):
            return existing
        hook = None if self._refused else make_hook(Hook, self._settings)
        self._refused = hook is None
        return hook


def _describe(given: Mapping[str, Any], folds: bool) -> Training:
    from smd_agent.xgboost.products import Training

    evals = None if folds else given.get("evals")
    if not isinstance(evals, (list, tuple)):
        # Whatever else XGBoost may take could perhaps be walked only once.
        evals = None
    return Training(
        hyperparameters={**dict(given.get("params") or {}), "num_boost_round": given.get("num_boost_round", 10)},
        train_data=None if folds else given.get("dtrain"),
        # XGBoost's early stopping looks at the last one too.
        validation_data=evals[-1][0] if evals else None,
        folds=folds,
    )
