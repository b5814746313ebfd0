"""The folder of the program's checkpoints, as a file names it: SageMaker's for a training that may be interrupted."""

from __future__ import annotations

from functools import partial
from os.path import isfile

from smd_agent import guard
from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source, read_object
from smd_agent.errors import ConfigError
from smd_agent.stalled_disk import in_time


def checkpoint_folder() -> str | None:
    """Return the folder, absolute; None where nobody names one, or, after one line, where the file is none.

    The file is the one that ``CHECKPOINT_CONFIG_FILE_PATH`` names, else the one at SageMaker's place.
    """
    named = env.checkpoint_config_path()
    path = named or env.DEFAULT_CHECKPOINT_CONFIG_PATH
    try:
        if named is None and not in_time(partial(isfile, path)):
            return None
        content, _ = read_object(Source(path, origin=env.CHECKPOINT_CONFIG_PATH, kind="checkpoint configuration"))
        folder = keys.Section(path, "", content, []).take(keys.LOCAL_PATH)
    except (ConfigError, TimeoutError) as error:
        guard.say_once(("checkpoints", path), f"{error}: where the training stands is not noted")
        return None
    return folder
