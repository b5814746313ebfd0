"""Hosts of a SageMaker job, as the file says that the job gives each of them."""

from __future__ import annotations

import functools

from smd_agent import guard
from smd_agent.config import env
from smd_agent.config.hook_file import Source, is_there, read_object
from smd_agent.errors import ConfigError


def rank_and_size(path: str | None = None) -> tuple[int, int] | None:
    """Return this host's place in the order of names, and how many hosts there are; None outside of such a job.

    A file is read once by a process. One that cannot be understood counts as none, and one line says so.

    Args:
        path: of the file; SageMaker's, if None.
    """
    return _read(path or env.DEFAULT_RESOURCE_CONFIG_PATH)


@functools.cache
def _read(path: str) -> tuple[int, int] | None:
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
