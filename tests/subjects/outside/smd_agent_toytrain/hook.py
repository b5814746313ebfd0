"""The hook of toytrain."""

from smd_agent.framework.built_in_collections import DEFAULT_SAVED, built_in_collections
from smd_agent.framework.hook import FrameworkHook


class Hook(FrameworkHook):
    """Saves the steps of a Trainer."""

    framework = "toytrain"
    built_in = built_in_collections(losses="^loss$")
    default_saved = DEFAULT_SAVED
