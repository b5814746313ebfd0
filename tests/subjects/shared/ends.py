"""Ways in which a program ends before its training does."""

import signal
import sys


def end_by(way):
    """End the program in this way; another word does nothing."""
    if way == "error":
        raise ValueError("the data are broken")
    if way == "exit":
        sys.exit(3)
    if way in ("SIGINT", "SIGTERM"):
        signal.raise_signal(getattr(signal, way))
