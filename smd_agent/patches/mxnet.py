"""Patches by which a Gluon run is noticed: Trainers being made, and blocks being called while autograd records.

``Trainer.__init__`` and ``autograd.backward`` stay watched (one is called once, the other passes the call on); the rest
is looked at only until the model is found (``smd_agent.mxnet.model_finder``).
"""

from __future__ import annotations

from types import ModuleType

from smd_agent import guard
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches.declared import DECLARED
from smd_agent.patches.hook_from_settings import make_hook, wanted_settings
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured


@whole_or_off("mxnet")
def apply(mxnet: ModuleType) -> None:
    """Have the blocks that the program trains found and saved."""
    settings = wanted_settings()
    if settings is None:
        return
    if not _is_supported(mxnet):
        supported = DECLARED["mxnet"].supported
        guard.say(f"mxnet {mxnet.__version__} is not supported ({supported} are): nothing will be captured")
        return
    from smd_agent.mxnet.hook import Hook
    from smd_agent.mxnet.model_finder import BlockFinder

    discovery = BlockFinder(HookSource(Hook, lambda: make_hook(Hook, settings, follow_calls=True)).hook)
    discovery.install()
    sign = "a gluon.Block called while autograd recorded"
    warn_at_exit_if_nothing_captured("mxnet", sign, settings, discovery.should_have_found, reason=discovery.reason)


def _is_supported(mxnet: ModuleType) -> bool:
    # Gluon 2 has other names for everything and no name scopes.
    block = mxnet.gluon.HybridBlock
    return all(hasattr(block, name) for name in ("_get_graph", "_build_cache", "_call_cached_op", "name_scope"))
