"""Roles of parameters, which tell whether one is in ``weights`` or in ``biases``: its name need not say so.

A parameter that is trained is in one of the two. Names that say "weight" or "bias" decide by the collections' regexes.
Of the others, ``beta``, as normalisations call their offset, and vectors called ``b``, ``b1``, ``b_hidden`` are biases;
all else, ``gamma`` and ``cls_token`` among them, is a weight.

A layer that nothing trains, while others of its model are trained, is in neither, whatever its names: copies with
averaged values, teachers, frozen parts.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.printable import count_of

if TYPE_CHECKING:
    from smd_agent.core.selection import Selection

WEIGHTS, BIASES = CollectionKeys.WEIGHTS, CollectionKeys.BIASES

_BIAS = re.compile(r"beta\d*")
_BIAS_VECTOR = re.compile(r"b(\d+|_\w+)?")


class Parameter(NamedTuple):
    """One parameter of a model.

    name: what its values are saved under.
    own_name: the last part of its name.
    dimensions: how many it has; None while it has no shape.
    trained: whether it is trained; None where that cannot be told, and its name alone decides.
    """

    name: str
    own_name: str
    dimensions: int | None
    trained: bool | None


def collection_of(own_name: str, dimensions: int | None) -> str:
    """The collection of a trained parameter whose name says neither "weight" nor "bias"."""
    is_vector = dimensions is not None and dimensions <= 1
    if _BIAS.fullmatch(own_name) or (is_vector and _BIAS_VECTOR.fullmatch(own_name)):
        return BIASES
    return WEIGHTS


class ParameterRoles:
    """Has ``weights`` and ``biases`` hold the parameters that are trained.

    A collection that the user has put in the place of one of them holds what its own regexes say, and regexes that
    were added to one bring in what they match.

    Args:
        selection: of the run.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._trained: dict[str, bool] = {}
        # Of each model: those that are left out, and would be saved but for that.
        self._left_out: dict[str, set[str]] = {}
        self._kept_out: set[str] = set()
        self._last: weakref.WeakKeyDictionary[object, object] = weakref.WeakKeyDictionary()

    def have_changed(self, model: object, *state: object) -> bool:
        """True if what tells the roles of a model's parameters is not what it was when this was asked last."""
        changed = self._last.get(model) != state
        self._last[model] = state
        return changed

    def is_trained(self, name: str) -> bool:
        """True if a parameter has ever been trained."""
        return self._trained.get(name, False)

    def settle(self, model: str, parameters: Iterable[Parameter], tell: bool = True) -> None:
        """Put parameters where they belong; what has been trained once stays there.

        Args:
            model: what the model is called in a message.
            parameters: of the model.
            tell: whether to say now what is left out; else ``tell_of`` says it.
        """
        left_out = self._left_out.setdefault(model, set())
        for parameter in parameters:
            if parameter.trained is None or self._trained.get(parameter.name) in (True, parameter.trained):
                continue
            self._trained[parameter.name] = parameter.trained
            if parameter.trained:
                left_out.discard(parameter.name)
                self._put_in(parameter)
            elif self._leave_out(parameter.name):
                left_out.add(parameter.name)
        if tell:
            self.tell_of(model)

    def tell_of(self, model: str) -> None:
        """Say once which parameters of a model are left out, if any are."""
        left_out = len(self._left_out.get(model, ()))
        if left_out and not self._selection.saves_everything:
            line = (
                f"{count_of(left_out, 'parameter')} of {model} that nothing trains "
                f"{'is' if left_out == 1 else 'are'} left out of weights and biases: "
                "to save them, set save_all (--save all), or name them in a collection of your own"
            )
            guard.say_once((self, model, "not trained"), line)

    def keep_out(self, names: Iterable[str]) -> None:
        """Keep tensors out of ``weights`` and ``biases`` that are about parameters, and are none, whatever their names.

        Args:
            names: of the tensors.
        """
        for name in names:
            if name not in self._kept_out:
                self._kept_out.add(name)
                self._leave_out(name)

    def _put_in(self, parameter: Parameter) -> None:
        selection = self._selection
        for collection in (WEIGHTS, BIASES):
            selection.take_back(collection, parameter.name)
        manager = selection.manager
        if not any(manager.get(collection).matches(parameter.name) for collection in (WEIGHTS, BIASES)):
            collection = collection_of(parameter.own_name, parameter.dimensions)
            if manager.keeps_built_in(collection):
                selection.place(collection, parameter.name)

    def _leave_out(self, name: str) -> bool:
        """True if the parameter would be saved but for that."""
        found = [self._selection.leave_out(collection, name) for collection in (WEIGHTS, BIASES)]
        return any(found)
