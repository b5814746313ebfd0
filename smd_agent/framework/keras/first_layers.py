"""Inputs of a Keras model that a layer with weights is given unchanged, told by how the model is put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from smd_agent.framework.keras.plain_access import attribute, unwrapped
from smd_agent.framework.plain_access import elements_of, is_a

# Layers that multiply what they are given by weights, and are made for numbers about 1.
_WEIGHTED = {
    *("Dense", "EinsumDense", "SimpleRNN", "LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "Bidirectional"),
    *(f"{kind}{space}D" for kind in ("Conv", "SeparableConv", "DepthwiseConv") for space in (1, 2, 3)),
    *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
}
# They return values that they are given.
_SAME = {
    *("InputLayer", "Flatten", "Reshape", "Permute", "RepeatVector", "Concatenate", "Dropout", "GaussianNoise"),
    *("SpatialDropout1D", "SpatialDropout2D", "ZeroPadding1D", "ZeroPadding2D", "Masking"),
}
# Of a deep model, the inputs go to the first ones.
_MOST = 64


def taken_as_they_are(model: Any, count: int) -> list[float | None]:
    """Tell of each of so many inputs of a model.

    Returns:
        1 where a layer with weights is given it, 0 where what it is given has been computed, None where that is not
        known: of models whose ``call`` the program has written.
    """
    if is_put_together(model, "Sequential") and count == 1:
        return [_first_of(attribute(model, "layers"))]
    inputs = list(tensors_in(attribute(model, "inputs")))
    if not is_put_together(model, "Functional") or len(inputs) != count:
        return [None] * count
    # Tensors that hold an input's values, by identity; they live as long as the model.
    origins = {id(tensor): number for number, tensor in enumerate(inputs)}
    found: list[float | None] = [0.0] * count
    for layer in attribute(model, "layers")[:_MOST]:
        given = list(tensors_in(tensor_of(layer, "input")))
        if {*map(id, given)} == {*map(id, tensors_in(attribute(layer, "inputs")))}:
            # Of a model inside of this one Keras 2 says what it was made of, not what it is given here.
            given = []
        if not given and kind_of(layer) != "InputLayer":
            # It may be given an input: it is called several times, or Keras does not say.
            found = [one or None for one in found]
        taken = {origins[id(one)] for one in given if id(one) in origins}
        kind = kind_of(layer)
        if kind in _SAME and len(taken) == 1:
            (number,) = taken
            origins.update((id(one), number) for one in tensors_in(tensor_of(layer, "output")))
        known = 1.0 if kind in _WEIGHTED else None
        if kind not in _SAME and known is None and attribute(layer, "layers"):
            known = taken_as_they_are(layer, 1)[0] if len(taken) == 1 else None
        if known:
            for number in taken:
                found[number] = 1.0
    return found


def _first_of(layers: Sequence[Any]) -> float | None:
    for layer in layers:
        kind = kind_of(layer)
        if kind in _WEIGHTED:
            return 1.0
        if attribute(layer, "layers"):
            return taken_as_they_are(layer, 1)[0]
        if kind not in _SAME:
            return 0.0 if _is_of_keras(layer) else None
    return None


def tensor_of(layer: Any, name: str) -> Any:
    """The tensor that a layer is given or returns; None of one that is called several times, or never."""
    try:
        return attribute(layer, name)
    except (AttributeError, ValueError, RuntimeError):
        return None


def tensors_in(value: Any) -> Iterator[Any]:
    """The tensors of what a layer is given or returns, in order."""
    value = unwrapped(value)
    if is_a(value, dict):
        value = [value[name] for name in sorted(value)]
    if is_a(value, (list, tuple)):
        for part in elements_of(value):
            yield from tensors_in(part)
    elif value is not None:
        yield value


def kind_of(layer: Any) -> str:
    """The name of the class of one of Keras's layers; "" of another one."""
    return type(layer).__name__ if _is_of_keras(layer) else ""


def _is_of_keras(layer: Any) -> bool:
    return _module(type(layer)) in ("keras", "tf_keras")


def is_put_together(model: Any, name: str) -> bool:
    """True if a model is put together by Keras; one that is made from such a class may have a call of its own."""
    kinds: Iterable[type] = type(model).__mro__
    base = next((kind for kind in kinds if kind.__name__ == name and _module(kind) in ("keras", "tf_keras")), None)
    return base is not None and type(model).call is base.call  # type: ignore[attr-defined]


def _module(kind: type) -> str:
    return kind.__module__.partition(".")[0]
