"""The search for the models being trained, in scripts that do not name them.

A framework's subclass shows the finder which parameters are trained, and the calls of models. The finder keeps account
of the parameters whose model is not known yet, and makes models known to the hook.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from smd_agent.framework.tracked_model import TrackedModel

# Calls of models that have none of the parameters looked for, before the search among calls is given up.
PATIENCE = 100


class ModelHook(Protocol):
    """A hook as the finder sees it."""

    @property
    def step(self) -> int:
        """Number of the current step over all modes; -1 before the first."""

    @property
    def models(self) -> Sequence[Any]:
        """The models whose calls open steps."""

    @property
    def has_registered(self) -> bool:
        """True if the program has registered models itself."""

    def remove_model(self, tracked: Any) -> None:
        """Leave a model alone again."""


M = TypeVar("M")
T = TypeVar("T", bound=TrackedModel[Any])
H = TypeVar("H", bound=ModelHook)


class ModelFinder(Generic[M, T, H]):
    """Base of the frameworks' searches: the account of trained parameters, and how a model becomes known.

    Args:
        find_hook: gives the hook to save with, once the first model is found; None if nothing can be saved.

    Attributes:
        hook: the hook in use, None before the first model is found.
        saw_training: whether the program has shown that it trains.
        stopped: whether the search is over for good.
    """

    def __init__(self, find_hook: Callable[[], H | None]) -> None:
        self.hook: H | None = None
        self.saw_training = False
        self.stopped = False
        self._find_hook = find_hook
        self._pending_params: dict[int, weakref.ref[Any]] = {}
        self._params_added_at_step = -1
        self._calls_without_match = 0

    # What a framework's subclass says.

    def parts_of(self, model: M) -> Iterable[M]:
        """A model and all that is below it."""
        raise NotImplementedError

    def track(self, hook: H, model: M, inner: list[T]) -> T:
        """Make a model known to the hook.

        Args:
            hook: the hook in use.
            model: the model.
            inner: models inside of it, which were known until now.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Search no more: the script registers its models itself, or nothing can be saved."""
        self.stopped = True

    def reason(self) -> str | None:
        """The reason why nothing of the program, which ends now, was captured; None if no training was missed."""
        return None

    # What all do alike.

    def should_have_found(self) -> bool:
        """True if the program, which ends now, has trained something that was not found."""
        return self.saw_training and self.hook is None and not self.stopped

    @property
    def step(self) -> int:
        """The hook's current step; -1 as long as there is no hook."""
        return self.hook.step if self.hook is not None else -1

    def models(self) -> Sequence[T]:
        """The models that are known."""
        return self.hook.models if self.hook is not None else ()

    def expect(self, parameters: Iterable[Any]) -> bool:
        """Look for the models of these parameters, which are trained; whether that of any is unknown."""
        if self.stopped:
            return False
        for parameter in parameters:
            self.saw_training = True
            self._pending_params[id(parameter)] = weakref.ref(parameter)
        self._calls_without_match = 0
        self._params_added_at_step = self.step
        return bool(self.params_without_model())

    def known_params(self) -> set[int]:
        """Ids of the parameters of known models; of what only a part is left, another training may have them anew."""
        whole = [tracked for tracked in self.models() if tracked.is_whole]
        return {id(parameter) for tracked in whole for _, parameter in tracked.parameters()}

    def params_without_model(self) -> set[int]:
        """Ids of trained parameters that are alive and have not belonged to a known model yet."""
        known = self.known_params()
        pending = self._pending_params.items()
        self._pending_params = {key: ref for key, ref in pending if key not in known and ref() is not None}
        return set(self._pending_params)

    def adopt(self, model: M) -> T | None:
        """Make a model known in place of those inside of it; None, and no more search, if nothing can be saved."""
        hook = self._hook_in_use()
        if hook is None:
            self.stop()
            return None
        self._calls_without_match = 0
        parts = {id(part) for part in self.parts_of(model)}
        inner: list[T] = [
            tracked for tracked in hook.models if tracked.model is not None and id(tracked.model) in parts
        ]
        for tracked in inner:
            hook.remove_model(tracked)
        known = [*hook.models]
        try:
            found = self.track(hook, model, inner)
        except BaseException:
            # Else it would be known, and not looked for.
            current: Any = hook.models
            current[:] = known
            raise
        if self._params_added_at_step == hook.step:
            # A training that was prepared after the last step of another one does not belong to that step.
            found.last = hook.step
        return found

    def _hook_in_use(self) -> H | None:
        hook = self._find_hook()
        if self.hook is None or (hook is not None and hook is not self.hook):
            # A script that registers models also knows which; to a hook of its own that has none, ours are added.
            self.hook = None if hook is None or hook.has_registered else hook
        return self.hook
