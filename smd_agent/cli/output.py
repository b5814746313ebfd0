"""The lines that commands print: the one way to stdout of what comes from a run or a user."""

from __future__ import annotations

import sys

from smd_agent.printable import printable


def emit(line: str = "") -> None:
    """Print a line; what would act on the terminal, or is not in its character set, is written as in Python."""
    line = printable(line)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding))
