"""The start of a process beside the program, which the program is told nothing of.

It is no child of the program's, so that no ``os.wait`` returns it and no SIGCHLD comes for it; it has a session of its
own, so that Ctrl-C does not reach it; it has none of the program's files, and a lower priority. What that takes is
compiled, see spawn.c; Python's own functions start children.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from smd_agent.descriptors import above_streams

LIBRARY = Path(__file__).with_name("spawn.so")
# Must be that of the library, whose file may be left over from another release.
_INTERFACE = 1
NICENESS = 10
"""Of the process when it starts; it may make it 19, the lowest priority, when it has."""

# What a pipe takes of which nobody reads, on every system.
_LARGEST_INPUT = 1 << 15


class CannotStart(Exception):
    """No process can be started, for a reason in words."""


def start_beside(arguments: Sequence[str], environment: Mapping[str, str], given: bytes) -> int:
    """Start a process; return what its output, which is that of errors, too, is read from.

    Args:
        arguments: its program and what that is told.
        environment: its variables.
        given: its input.

    Raises:
        CannotStart: it cannot be started so that the program is told nothing of it.
    """
    library = _library()
    if library.smd_agent_adopts():
        raise CannotStart("this process becomes the parent of others, as the first one of a container does")
    opened: list[int] = []
    try:
        source, into = _pipe(opened)
        output, to = _pipe(opened)
        os.set_blocking(into, False)
        if len(given) > _LARGEST_INPUT or os.write(into, given) < len(given):
            raise CannotStart("what it has to be told is too long")
        opened.remove(into)
        os.close(into)
        number = library.smd_agent_spawn(
            *(_texts(arguments), _texts(f"{name}={text}" for name, text in environment.items()), source, to, NICENESS)
        )
        if number:
            raise CannotStart(os.strerror(number))
        opened.remove(output)
        return output
    except OSError as error:
        raise CannotStart(error.strerror or str(error)) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened += ends
    for place, descriptor in enumerate(ends, len(opened) - 2):
        opened[place] = above_streams(descriptor)
    return opened[-2], opened[-1]


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError:
        raise CannotStart("the agent was installed without its compiled parts, for want of a C compiler") from None
    if not hasattr(library, "smd_agent_spawn_interface") or library.smd_agent_spawn_interface() != _INTERFACE:
        raise CannotStart(f"{LIBRARY} is not of this release")
    return library


def _texts(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [os.fsencode(text) for text in texts]
    return (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None)
