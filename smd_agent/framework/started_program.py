"""The program of this process as it was started: its words, and the folder that it is in."""

from __future__ import annotations

import os
import sys

_WITH_VALUES = ("-X", "-W", "--check-hash-based-pycs")


def program_words() -> list[str]:
    """The program as an interpreter is given it, without the interpreter's own options."""
    words = [*sys.orig_argv[1:]]
    while words and words[0].startswith("-") and words[0][:2] not in ("-m", "-c") and words[0] != "-":
        del words[: 2 if words[0] in _WITH_VALUES else 1]
    return words


def current_folder() -> str:
    """The current folder of the process; empty where it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""
