"""The placeholders in a folder's name: what differs between machines, launches and ranks.

``{date}`` and ``{pid}`` are those of the first process of a launch that reads its configuration, so that all processes
it starts write into one folder; a variable of the environment hands them on.
"""

from __future__ import annotations

import os
import re
import time

from smd_agent.config import env

ALLOWED = "{host}, {pid}, {rank} and {date}"
RANK = "rank"

# Other braces stand for themselves, and so does a name in doubled ones.
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{(\w+)\}")


class UnknownPlaceholder(Exception):
    """The argument is the placeholder."""


def fill_in(text: str) -> str:
    """Return a folder's name with what its placeholders stand for; a name in doubled braces gets single ones.

    ======== ===========================================================================
    {host}   the machine's name
    {pid}    number of the process that was launched
    {rank}   this process's rank, as far as the environment tells when this is asked; else 0
    {date}   day and time of the launch, as in 20260131-235959
    ======== ===========================================================================

    Raises:
        UnknownPlaceholder: there is another one.
    """
    return _PLACEHOLDER.sub(_filled, text)


def literal(text: str) -> str:
    """Return a name of a folder that is, filled in, this text."""
    return re.sub(r"\{(\w+)\}", r"{{\1}}", text)


def names_rank(text: str) -> bool:
    """True if each rank has a folder of its own by this name."""
    return any(match[2] == RANK for match in _PLACEHOLDER.finditer(text))


def _filled(match: re.Match[str]) -> str:
    literal, name = match.groups()
    if literal is not None:
        return f"{{{literal}}}"
    if name == "host":
        return os.uname().nodename.replace(os.sep, "_")
    if name == RANK:
        place = env.rank_and_size()
        return "0" if place is None else str(place[0])
    if name not in ("date", "pid"):
        raise UnknownPlaceholder(match[0])
    date, pid = launch()
    return date if name == "date" else pid


def launch() -> tuple[str, str]:
    """Return date and pid of the launch that this process belongs to; it is the first one if there is none yet."""
    date, _, pid = (env.get(env.LAUNCHED) or "").partition(" ")
    if not pid:
        date, pid = time.strftime("%Y%m%d-%H%M%S"), str(os.getpid())
        env.put(env.LAUNCHED, f"{date} {pid}")
    return date, pid
