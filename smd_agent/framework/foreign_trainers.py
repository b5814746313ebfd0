"""Trainers of other libraries, which run the loop of a training and end it when they are told to.

They are known by the functions that are running. Lightning's ends its loop behind the current batch where its
``should_stop`` is set, that of ``transformers`` where ``should_training_stop`` of its ``control`` is.
"""

from __future__ import annotations

from typing import Any

from smd_agent.framework.plain_access import attribute
from smd_agent.interpreter.callers import callers, first_argument

_LIGHTNING = ("lightning", "pytorch_lightning")


def end_after_step() -> str:
    """Have the trainer that this thread's loop is in end it when the current step is over; its name, "" if none is."""
    for frame in callers():
        found: Any = first_argument(frame)
        for base in type(found).__mro__:
            if base.__name__ != "Trainer":
                continue
            package = base.__module__.partition(".")[0]
            if package in _LIGHTNING:
                found.should_stop = True
                return "Lightning"
            if package == "transformers" and attribute(found, "control") is not None:
                found.control.should_training_stop = True
                return "transformers"
    return ""
