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
    name, holder, flag = _trainer()
    if name:
        setattr(holder, flag, True)
    return name


def goes_on() -> bool:
    """True if the trainer that this thread's loop is in was told to end it, and does not, as it may have a minimum."""
    name, holder, flag = _trainer()
    return bool(name) and bool(getattr(holder, flag))


def _trainer() -> tuple[str, Any, str]:
    """Name of the trainer's library, and the object and the attribute by which it is told to end."""
    for frame in callers():
        found: Any = first_argument(frame)
        for base in type(found).__mro__:
            package = base.__module__.partition(".")[0] if base.__name__ == "Trainer" else ""
            if package in _LIGHTNING:
                return "Lightning", found, "should_stop"
            if package == "transformers" and attribute(found, "control") is not None:
                return "transformers", found.control, "should_training_stop"
    return "", None, ""
