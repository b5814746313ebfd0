"""Files of a SageMaker job beside the hook file: its hosts, its checkpoints, its TensorBoard folder."""

from __future__ import annotations

import os
from functools import cache, partial

from smd_agent import guard
from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source, is_there, read_object
from smd_agent.errors import ConfigError
from smd_agent.stalled_disk import in_time


def rank_and_size_of_host(path: str | None = None) -> tuple[int, int] | None:
    """Return this host's place in the order of names, and how many hosts there are; None outside of such a job.

    A file is read once by a process. One that cannot be understood counts as none, and one line says so.

    Args:
        path: of the file; SageMaker's, if None.
    """
    return _hosts(path or env.DEFAULT_RESOURCE_CONFIG_PATH)


@cache
def _hosts(path: str) -> tuple[int, int] | None:
    source = Source(path)
    try:
        if not is_there(source):
            return None
        content, _ = read_object(source)
    except ConfigError as error:
        guard.say_once(("hosts", source.name), f"{error}; this host counts as the only one")
        return None
    hosts, own = content.get("hosts"), content.get("current_host")
    if not isinstance(hosts, list) or own not in hosts or not all(isinstance(host, str) for host in hosts):
        line = f"{source.name} does not list current_host among hosts; this host counts as the only one"
        guard.say_once(("hosts", source.name), line)
        return None
    return sorted(hosts).index(own), len(hosts)


def checkpoint_folder() -> str | None:
    """Return the folder of checkpoints, absolute; None where nobody names one.

    The file is the one that ``CHECKPOINT_CONFIG_FILE_PATH`` names, else the one at SageMaker's place. For one that is
    none it is None, after one line.
    """
    named = env.checkpoint_config_path()
    path = named or env.DEFAULT_CHECKPOINT_CONFIG_PATH
    try:
        if named is None and not in_time(partial(os.path.isfile, path)):
            return None
        content, _ = read_object(Source(path, origin=env.CHECKPOINT_CONFIG_PATH, kind="checkpoint configuration"))
        folder = keys.Section(path, "", content, []).take(keys.LOCAL_PATH)
    except (ConfigError, TimeoutError) as error:
        guard.say_once(("checkpoints", path), f"{error}: where the training stands is not noted")
        return None
    return folder


def folder_wanted(export: bool | None, folder: str | None, out_dir: str) -> str | None:
    """Return the folder of TensorBoard's files; None where none are wanted.

    In a SageMaker training job only the file counts that ``TENSORBOARD_CONFIG_FILE_PATH`` names. Elsewhere that file
    counts if the variable is set and the parameters say nothing.

    Args:
        export: ``export_tensorboard``; None where it is not given.
        folder: ``tensorboard_dir``, which alone switches them on.
        out_dir: the run's folder, which has them where no other one is named.

    Raises:
        ConfigError: the file is no such file.
    """
    if env.in_training_job():
        return _named_by_file(env.tensorboard_config_path())
    if export is False:
        return None
    if folder is None and export:
        return os.path.join(out_dir, "tensorboard")
    if folder is None and env.get(env.TENSORBOARD_CONFIG_PATH):
        return _named_by_file(env.tensorboard_config_path())
    return folder


def _named_by_file(path: str) -> str | None:
    if not os.path.isfile(path):
        return None
    content, _ = read_object(Source(path))
    return keys.Section(path, "", content, []).take(keys.LOCAL_PATH)
