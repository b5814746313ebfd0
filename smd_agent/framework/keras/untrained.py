"""Variables of a model of ``fit`` that can be trained, and that its step does not train: unfrozen, or not tracked.

Keras 3 keeps the step function of a model until that is compiled again, with the variables that it trained then; and it
knows of no variable of TensorFlow's that a layer holds. Keras 2 has ``fit`` go by what could be trained when the model
was compiled, and tracks both kinds: there nothing of this shows.

They are told of only when several steps have passed and they have not changed: the program may train them otherwise.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

from smd_agent.framework.weak_references import Reference, WeakIdentityMap

Sample = Callable[[Any], Any]
"""Gives what is looked at of a variable, None if it has no numbers."""

# Steps of the run, saved or not: another model may train the same variables in between, as one of a GAN does.
_PATIENCE = 10


class _First(NamedTuple):
    """A variable when it was seen first.

    step: of the run.
    value: a checksum of what it held; None if that is not known, or if it has changed since.
    """

    step: int
    value: int | None


class _Unchanged:
    """The variables that have been asked for, with what they held then."""

    def __init__(self) -> None:
        self._first: WeakIdentityMap[Any, _First] = WeakIdentityMap()

    def has(self, step: int, variable: Any, sample: Sample) -> bool:
        """True if a variable has been asked for some steps ago, and has not changed since, as far as was seen."""
        array = sample(variable)
        value = None if array is None else zlib.crc32(array.tobytes())
        first = self._first.get(variable)
        if first is None:
            self._first.set(variable, _First(step, value))
        elif value is None or value != first.value:
            # It has been trained, by whatever.
            self._first.set(variable, first._replace(value=None))
        else:
            return step - first.step >= _PATIENCE
        return False


class Unfrozen:
    """The variables of a model that were frozen whenever its step function was traced."""

    def __init__(self) -> None:
        self._frozen: WeakIdentityMap[Any, bool] = WeakIdentityMap()
        self._unchanged = _Unchanged()

    def traced(self, variables: Iterable[Any], trainable: Iterable[Any]) -> None:
        """The step function is traced with these variables, of which some can be trained."""
        known = {id(variable) for variable in trainable}
        for variable in variables:
            if self._frozen.get(variable) is not False:
                self._frozen.set(variable, id(variable) not in known)

    def left(self, step: int, trainable: Iterable[Any], given: Container[Any], sample: Sample) -> set[int]:
        """The ids of those that can be trained now, and that nothing has trained for some steps.

        Args:
            step: of the run, a saved one.
            trainable: the variables that can be trained now.
            given: those that optimizers were given in the model's steps.
            sample: looks at a variable.
        """
        found = [one for one in trainable if self._frozen.get(one) and one not in given]
        return {id(one) for one in found if self._unchanged.has(step, one, sample)}


class Untrained:
    """The variables of a model that its steps do not train, though they can be trained.

    unfrozen: those that could not be trained while its steps were traced.
    untracked: those that Keras does not know of.
    """

    def __init__(self) -> None:
        self.unfrozen = Unfrozen()
        self.untracked = Untracked()


class Untracked:
    """The variables that the layers of a model hold, that its loss depends on, and that Keras does not know of."""

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref[Any]] = {}
        self._unchanged = _Unchanged()

    def add(self, variables: Iterable[Any]) -> None:
        """The loss of a step that is traced depends on these."""
        self._found.update((id(variable), Reference(variable)) for variable in variables)

    def left(self, step: int, given: Container[Any], sample: Sample) -> list[Any]:
        """Those that nothing has trained for some steps; see ``Unfrozen.left``."""
        living = [variable for reference in self._found.values() if (variable := reference()) is not None]
        return [one for one in living if one not in given and self._unchanged.has(step, one, sample)]
