"""Parts of the losses that backward passes start from, learned in training.

An evaluation computes the same loss, but nothing starts from it. By what is known here it gets the name that it has in
training: it comes from the same function, or is the same part of what the model returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

_SETTINGS = (bool, int, float)

OWN_LOSS = "loss"
"""Under this name models return a loss that they have worked out themselves."""


class FunctionCall(NamedTuple):
    """A function of ``torch.nn.functional`` and how it was called; None: not known."""

    function: str
    settings: tuple[Any, ...] | None


def function_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionCall:
    """A call of a function by its settings: all arguments that are no tensors."""
    named = [(key, value) for key, value in sorted(kwargs.items()) if type(value) in _SETTINGS]
    return FunctionCall(name, (*(value for value in args if type(value) in _SETTINGS), *named))


class _Model:
    """The knowledge of the losses of one model."""

    def __init__(self) -> None:
        self.functions: set[FunctionCall] = set()
        self.places: set[object] = set()
        self.own_is_ignored = False
        self.unseen = ""


class TrainedLosses:
    """The origins of the trained losses of all models; models are known by their titles."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}

    def learn_function(self, titles: Iterable[str], call: FunctionCall) -> None:
        """A loss of these models was what this call had returned."""
        for model in map(self._model, titles):
            model.functions.add(call)

    def learn_place(self, title: str, place: object) -> None:
        """A loss was this part of what the model had returned."""
        self._model(title).places.add(place)

    def learn_ignored(self, title: str) -> None:
        """The loss that the model returns under its name is not the one that is trained."""
        self._model(title).own_is_ignored = True

    def learn_unseen(self, titles: Iterable[str], why: str) -> None:
        """A loss of these models comes from where an evaluation does not show it."""
        for model in map(self._model, titles):
            model.unseen = why

    def is_trained_call(self, titles: Iterable[str], call: FunctionCall) -> bool:
        """True if what this call has returned is a loss that one of these models is trained by."""
        whatever = FunctionCall(call.function, None)
        return any(not model.functions.isdisjoint((call, whatever)) for model in map(self._model, titles))

    def is_trained_place(self, title: str, place: object) -> bool:
        """True if this part of what the model returns is a loss that it is trained by."""
        return place in self._model(title).places

    def is_ignored(self, title: str) -> bool:
        """True if the loss that the model returns under its name is another than the one that is trained."""
        model = self._model(title)
        return model.own_is_ignored and OWN_LOSS not in model.places

    def why_unseen(self, titles: Iterable[str]) -> str:
        """The reason why a loss of one of these models does not show in an evaluation; empty if none is known."""
        return next((model.unseen for model in map(self._model, titles) if model.unseen), "")

    def _model(self, title: str) -> _Model:
        return self._models.setdefault(title, _Model())
