"""The phases of a training run that steps are counted in."""

from __future__ import annotations

import enum


class ModeKeys(enum.Enum):
    """A phase of a run; the numbers are part of the file format. GLOBAL counts the steps of all phases."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
