"""Classes whose methods count how often they are called, for scripts of scenes."""

import contextlib
from collections import Counter

calls = Counter()
_resting = [0]


@contextlib.contextmanager
def resting():
    """Count nothing for a while: what the script does for itself is none of a training."""
    _resting[0] += 1
    try:
        yield
    finally:
        _resting[0] -= 1


def count(name):
    if not _resting[0]:
        calls[name] += 1


def told():
    """Return how often each method was called since this was asked last."""
    found = ", ".join(f"{name} {number}" for name, number in sorted(calls.items()))
    calls.clear()
    return found


def raising(name):
    """Make a method that is not what it seems: whoever calls it gets an error."""

    def method(self, *args, **kwargs):
        count(name)
        raise (AttributeError if name == "__getattr__" else TypeError)(f"{name} is not for you")

    return method


def passing(name, base):
    """Make a method that counts and does what the base class does."""

    def method(self, *args, **kwargs):
        count(name)
        return getattr(base, name)(self, *args, **kwargs)

    return method


def reading(name, base):
    """Make a property that counts and gives what the base class has."""

    def value(self):
        count(name)
        return getattr(base, name).__get__(self, type(self))

    return property(value)


def refusing(name):
    """Make a property whose readers get an error."""
    return property(raising(name))


def told_class(self):
    count("__class__")
    return type(self)


def made(base, names, passed=()):
    """Return what a class has that overrides all of these: those of ``passed`` work, the others raise."""
    body = {name: passing(name, base) if name in passed else raising(name) for name in names}
    if "__class__" in body:
        body["__class__"] = property(told_class)
    return body
