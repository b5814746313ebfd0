"""The process that asks the rules of a configuration while training goes on, as it is to be started."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from smd_agent.config import env
from smd_agent.config.settings import LiveRule
from smd_agent.framework.trackers import Trackers
from smd_agent.storage.watch_process import WatchProcess

# It computes little, and needs no threads for that.
_THREADS = "OPENBLAS_NUM_THREADS"
# It is not to capture itself, nor what its actions start.
_VARIABLES = {
    **dict.fromkeys((env.CONFIG_PATH, env.HOOK, env.LAUNCH_PID, env.LAUNCHED, env.REPORTED, env.STRICT, env.OBSERVER)),
    env.USE: "false",
    _THREADS: "1",
}


def watch_for(rules: Sequence[LiveRule]) -> WatchProcess | None:
    """Return the process, which has not been started; None where no rule is to be asked."""
    if not rules or not env.use_smdebug():
        return None
    asked = [[rule.name, rule.parameters, rule.on_find, [*rule.actions]] for rule in rules]
    told = {"rules": asked, "variables": {_THREADS: env.get(_THREADS)}}
    return WatchProcess(told, partial(env.for_child, _VARIABLES), lambda: Trackers().tell)
