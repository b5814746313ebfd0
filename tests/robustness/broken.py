"""A part that nothing survives: by it the tests see that what goes wrong is noticed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from robustness.part import Part

ENDS = ("hangs", "dies", "raises", "fills the memory", "ends well")


def prepare(folder: Path) -> None:
    """Count the cases."""
    (folder / "count").write_text("0")


def attempt(random: Random, folder: Path) -> str:
    """Do one kind of harm after the other."""
    kind = ENDS[random.randrange(len(ENDS))]
    if kind == "hangs":
        time.sleep(60)
    elif kind == "dies":
        os._exit(3)
    elif kind == "raises":
        raise ValueError("it is wrong")
    elif kind == "fills the memory":
        bytearray(1 << 31)
    return "well"


PART = Part("broken", "Broken", "Nothing.", 5, prepare, attempt, seconds=1)
