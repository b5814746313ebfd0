"""Classes that are callbacks of each Keras that is imported: code may ask for an instance of its class.

Importing a Keras to make it a base would be for the program to do.
"""

from __future__ import annotations

from smd_agent import guard

_CLASSES: list[type] = []


def callback_of_each(cls: type) -> type:
    """Have a class be a callback of each Keras that is imported from now on; a decorator."""
    _CLASSES.append(cls)
    return cls


def add_base(callback: type) -> None:
    """Make the classes callbacks of a Keras that has been imported."""
    for cls in _CLASSES:
        if not issubclass(cls, callback):
            # A class of the program's may have both as bases, in an order that this one would contradict.
            guard.attempt(lambda cls=cls: setattr(cls, "__bases__", (*cls.__bases__, callback)))  # type: ignore[misc]
