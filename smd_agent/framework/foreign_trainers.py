"""Trainers of other libraries, which run the loop of a training and end it when they are told to.

They are known by the functions that are running. Lightning's ends its loop behind the current batch where its
``should_stop`` is set, that of ``transformers`` where ``should_training_stop`` of its ``control`` is.
"""

from __future__ import annotations

from typing import Any

from smd_agent.framework.plain_access import attribute
from smd_agent.interpreter.callers import callers, first_argument

_LIGHTNING = "Lightning"
_PACKAGES = {"lightning": _LIGHTNING, "pytorch_lightning": _LIGHTNING, "transformers": "transformers"}


def end_after_step() -> str:
    """Have the trainer that this thread's loop is in end it when the current step is over; its name, "" if none is."""
    name, trainer = _trainer()
    if name == _LIGHTNING:
        trainer.should_stop = True
    elif name:
        trainer.control.should_training_stop = True
    return name


def goes_on() -> bool:
    """True if the trainer that this thread's loop is in was told to end it, and does not, as it may have a minimum."""
    name, trainer = _trainer()
    if name == _LIGHTNING:
        return bool(trainer.should_stop)
    return bool(name) and bool(trainer.control.should_training_stop)


def _trainer() -> tuple[str, Any]:
    """The trainer, and the name of its library."""
    for frame in callers():
        found: Any = first_argument(frame)
        for base in type(found).__mro__:
            name = _PACKAGES.get(base.__module__.partition(".")[0], "") if base.__name__ == "Trainer" else ""
            if name == _LIGHTNING or (name and attribute(found, "control") is not None):
                return name, found
    return "", None
