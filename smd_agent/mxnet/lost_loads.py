"""Parameters that were loaded from a file and initialized again, before anything was computed with what was loaded.

``usage/model/<title>/lost`` is how many of a model's parameters that is so of, and ``usage/model/<title>/loaded`` how
many were loaded, at the last of their loads; neither is told where none is lost. Values that the program sets
afterwards take the place of those. Once any block has been called, what was loaded has been used: a program may
evaluate the best epoch of one fold, and initialize for the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from mxnet.gluon import Block, Parameter

from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.framework.plain_access import attribute, elements_of
from smd_agent.framework.replaced_functions import Function, Until, is_replaced, replace
from smd_agent.framework.step_events import NewParameters, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import block_calls

_WHY = "what is loaded and initialized again is lost"


class _State(Enum):
    """Fate of the values of a parameter that were loaded."""

    WAITING = "nothing has been computed with them"
    USED = "a block has been called"
    LOST = "the parameter was initialized again before that"
    REPLACED = "the program has set others"


class _Loads:
    """The parameters of the process that were loaded.

    Attributes:
        states: what has become of each.
        notes_all: whether a parameter that the program sets is noted too if it was not loaded.
    """

    def __init__(self) -> None:
        self.states: WeakIdentityMap[Parameter, _State] = WeakIdentityMap()
        self.notes_all = False
        self._unwatch: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to take note of loads; called again, do nothing."""
        if not is_replaced(Parameter, "_load_init"):
            replace(Parameter, "_load_init", self._wrap_load, why=_WHY)
            replace(Parameter, "_finish_deferred_init", self._wrap_initialization, why=_WHY)
            replace(Parameter, "set_data", self._wrap_set_data, why=_WHY)

    def _wrap_load(self, original: Function) -> Function:
        def load_init(parameter: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            self._loaded(parameter)
            return result

        return load_init

    def _wrap_initialization(self, original: Function) -> Function:
        def finish(parameter: Any, *args: Any, **kwargs: Any) -> Any:
            is_lost = self._is_lost(parameter)
            result = original(parameter, *args, **kwargs)
            if is_lost:
                self.states.set(parameter, _State.LOST)
            return result

        return finish

    def _wrap_set_data(self, original: Function) -> Function:
        def set_data(parameter: Any, *args: Any, **kwargs: Any) -> Any:
            if self.notes_all or self.states.get(parameter) is not None:
                self.states.set(parameter, _State.REPLACED)
            return original(parameter, *args, **kwargs)

        return set_data

    @PARAMETERS.fence("taking note of a parameter that is loaded")
    def _loaded(self, parameter: Any) -> None:
        self.states.set(parameter, _State.WAITING)
        if self._unwatch is None:
            self._unwatch = block_calls.watch(self._call, Until.MODEL_IS_FOUND)

    @PARAMETERS.fence("looking at a parameter that is initialized")
    def _is_lost(self, parameter: Any) -> bool:
        waiting = [*elements_of(attribute(parameter, "_deferred_init"))]
        # The last of them is a value that the program has set.
        return bool(waiting and waiting[-1] is None and self.states.get(parameter) is _State.WAITING)

    @unseen
    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        self._used()
        return original(block, *args, **kwargs)

    @PARAMETERS.fence("looking at the first call after parameters were loaded")
    def _used(self) -> None:
        unwatch, self._unwatch = self._unwatch, None
        if unwatch is not None:
            unwatch()
        for parameter, state in self.states.pairs():
            if state is _State.WAITING:
                self.states.set(parameter, _State.USED)


loads = _Loads()


class LostLoads(UsageProbe, domain=PARAMETERS, doing="looking at parameters that were loaded"):
    """Those of the models of one step that is saved."""

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Tell of these parameters."""
        states = [state for _, parameter in new.pairs if (state := loads.states.get(parameter)) is not None]
        lost = states.count(_State.LOST)
        if lost:
            loaded = len(states) - states.count(_State.REPLACED)
            self._usage.save(f"model/{new.title}", {"loaded": loaded, "lost": lost})
