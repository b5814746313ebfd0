"""Length of executions of several steps (``steps_per_execution``), and functions that run the same steps one by one."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from smd_agent import guard
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.replaced_functions import replace
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.tensorflow.graph.function_rewrite import carries_state


class Windows:
    """Tells how many steps each execution of a Keras 3 model makes: the last one of the data may be shorter."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._iterator: weakref.ref[Any] | None = None
        self._left: int | None = None

    def __call__(self, args: tuple[object, ...]) -> int:
        """Number of steps that the execution with these arguments makes."""
        iterator = args[0] if args else None
        if not is_a(iterator, (tf.data.Iterator, tf.distribute.DistributedIterator)):
            # A batch that was handed over by itself, or what predict has fetched for one execution.
            return max(list.__len__(iterator), 1) if is_a(iterator, list) else 1
        if self._iterator is None or self._iterator() is not iterator:
            self._iterator = weakref.ref(iterator)
            self._left = _length_of(iterator)
        if not self._left:
            return self._steps
        steps = min(self._steps, self._left)
        self._left -= steps
        return steps


_epochs: WeakIdentityMap[Any, bool] = WeakIdentityMap()


def watch_epochs(trainer: type) -> None:
    """Know what Keras 3 knows of the length of the data: its iterators are noted when they are made."""
    cls: Any = vars(sys.modules[trainer.__module__]).get("TFEpochIterator")
    if cls is None:
        return

    def around(original: Call) -> Call:
        def init(epochs: object, *args: object, **kwargs: object) -> Any:
            result = original(epochs, *args, **kwargs)
            _epochs.set(epochs, True)
            return result

        return init

    replace(cls, "__init__", around, why="it knows how many steps an epoch has")


def _length_of(iterator: object) -> int | None:
    """Number of steps of the data; None if nobody knows, or if they have no end."""
    for epochs, _ in _epochs.pairs():
        if attribute(epochs, "_current_iterator") is iterator:
            number = attribute(epochs, "_num_batches")
            if number is not None:
                return int(number)
    dataset = attribute(iterator, "_dataset")
    number = -2 if dataset is None else int(attribute(dataset, "cardinality")())
    if number == -2:
        guard.say_once(
            "length unknown",
            "with steps_per_execution > 1 and data of unknown length, an execution that the end of the data cuts short"
            " counts as a whole one",
        )
    return None if number < 0 else number


def feeding(function: Call) -> Call | None:
    """The function for one step of Keras 3: what it is given by a plain iterator, its own function takes one by one.

    The names of what the function closes over are Keras's own; None where they are others.
    """
    inside: Any = inspect.getclosurevars(function).nonlocals.get("multi_step_on_iterator")
    if inside is None:
        return None
    traced = attribute(inside, "get_concrete_function") is None

    def single(iterator: Iterator[Any]) -> Any:
        nonlocal traced
        if not traced:
            traced = True
            # The trace that the model would make itself; batches that follow find it.
            inside.get_concrete_function(iterator)
        return function([next(iterator)])

    return single


def draws_by_itself(function: Call, args: tuple[object, ...]) -> bool:
    """True if a model's function of Keras 2 has random numbers of its own: one made for one step would draw others.

    It is traced for that, as the model would do it: a layer may give each trace another seed, so that the model's own
    must stay the first one.
    """
    trace = attribute(function, "get_concrete_function")
    return trace is not None and carries_state(trace(*args).function_def)


def made_for_one_step(model: Model, kind: str, make: Call) -> Call | None:
    """The function for one step of Keras 2: made as if the model had no ``steps_per_execution``."""
    own = vars(model)
    names = [f"{kind}_function", f"{kind}_tf_function"]
    before = {name: own[name] for name in names if name in own}
    slot = "_steps_per_execution"
    steps = own[slot]
    own[slot] = None
    try:
        own[names[0]] = None
        make(model, force=True)
        made: Call | None = own[names[0]]
    finally:
        own[slot] = steps
        own.update(before)
    return made


def steps_per_execution(model: Model) -> int:
    """Number of steps that one call of the model's functions makes."""
    value: Any = attribute(model, "_steps_per_execution")
    if value is None:
        value = attribute(model, "steps_per_execution", 1)
    # A variable of Keras 2; a model that is not compiled has none.
    read = attribute(value, "numpy")
    return max(int((value if read is None else read()) or 1), 1)
