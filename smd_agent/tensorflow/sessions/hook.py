"""The hooks for ``tf.compat.v1`` sessions and for estimators, and what finds sessions in a program that has no hook."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

import tensorflow as tf

from smd_agent import guard
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import replace
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.sessions.graph_notes import ESTIMATOR, note_modes, notes_on, watch_optimizers
from smd_agent.tensorflow.sessions.session_steps import SessionRun
from smd_agent.tensorflow.types import Function, Graph, RunContext, RunValues, Session
from smd_agent.tensorflow.variable_names import variables_in


class SessionHook(TensorflowHook, tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Saves the runs of a monitored session; handed to it in ``hooks=``.

    A step is a run that trains; in a graph without an optimizer every run is one.
    """

    def set_up(self) -> None:
        """No session is known yet."""
        super().set_up()
        # A hook may serve several at a time: an estimator evaluates while its training session is open.
        self._runs: WeakIdentityMap[Graph, SessionRun] = WeakIdentityMap()
        # The runs under way: a session that is handed the hook twice calls it twice.
        self._under_way: WeakIdentityMap[Graph, weakref.ref[RunContext] | None] = WeakIdentityMap()
        watch_optimizers()

    def set_optimizer_variables(self, optimizer_variables: object) -> None:
        """Save variables of an optimizer, several or one; those of ``tf.compat.v1`` optimizers are known without it."""
        found: list[Any] = variables_in(optimizer_variables)
        for variable in found:
            notes_on(variable.graph).optimizer_variables.add(variable.name)

    def begin(self) -> None:
        """A session is made for the default graph."""
        self._runs.set(tf.compat.v1.get_default_graph(), SessionRun(self)).begin()

    def after_create_session(self, session: Session, coord: object) -> None:
        """Nothing to do: the graph is the one known from ``begin``."""

    def before_run(self, run_context: RunContext) -> Any:
        """A run is about to start."""
        graph = run_context.session.graph
        run = self._runs.get(graph)
        if run is None or self._is_under_way(run_context):
            return None
        self._under_way.set(graph, weakref.ref(run_context))
        return run.before_run(run_context)

    def after_run(self, run_context: RunContext, run_values: RunValues) -> None:
        """A run has succeeded."""
        run = self._runs.get(run_context.session.graph)
        if run is not None and self._is_under_way(run_context):
            self._under_way.set(run_context.session.graph, None)
            run.after_run(run_context, run_values)

    def end(self, session: Session) -> None:
        """The session ends; the hook may serve another."""
        self.finish_step()

    def _is_under_way(self, run_context: RunContext) -> bool:
        known = self._under_way.get(run_context.session.graph)
        return known is not None and known() is run_context


class EstimatorHook(SessionHook):
    """Saves what an estimator's train, evaluate and predict run; handed to them in ``hooks=``."""

    def set_up(self) -> None:
        """Take the mode from the call until ``set_mode`` is called."""
        super().set_up()
        self.follow_calls()
        # Where it cannot be imported (it is not there, or it is of another release) nobody uses it.
        guard.attempt(lambda: note_modes(importlib.import_module(ESTIMATOR).Estimator))


def watch_sessions(source: HookSource[TensorflowHook]) -> None:
    """Give every monitored session that is made from now on to a hook, unless it has one of ours already."""
    watch_optimizers()
    # __init__(self, session_creator, hooks, stop_grace_period_secs), and of the other (self, hooks, scaffold, ...).
    for owner, at in ((tf.compat.v1.train.MonitoredSession, 1), (tf.compat.v1.train.SingularMonitoredSession, 0)):
        replace(owner, "__init__", partial(_joining, source, at), why="a session that trains is given a hook")


def _joining(source: HookSource[TensorflowHook], at: int, original: Function) -> Function:
    """A session's constructor that adds a hook to ``hooks``, the positional argument of this number."""

    def init(self: object, *args: Any, **kwargs: Any) -> None:
        found = _joined(kwargs.get("hooks") if "hooks" in kwargs or len(args) <= at else args[at], source)
        if found is not None:
            if "hooks" in kwargs or len(args) <= at:
                kwargs["hooks"] = found
            else:
                args = (*args[:at], found, *args[at + 1 :])
        original(self, *args, **kwargs)

    return init


@STEPS.fence("joining a session", again=True)
def _joined(hooks: Iterable[object] | None, source: HookSource[TensorflowHook]) -> list[object] | None:
    present = list(hooks or ())
    ours: list[object] = [hook for hook in present if is_a(hook, (SessionHook, SessionRun))]
    if not ours:
        hook = source.hook()
        ours = [] if hook is None else [SessionRun(hook)]
    # First, so that it has saved the step when another hook (one that saves checkpoints) has the model evaluated.
    known = {id(hook) for hook in ours}
    return [*ours, *(hook for hook in present if id(hook) not in known)]
