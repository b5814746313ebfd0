"""Recurrent layers of Keras that go on through padding, and of which only the last step is used.

``usage/layer/<name>/<fact>``, of layers of models that Keras has put together: ``SimpleRNN``, ``LSTM`` and ``GRU`` that
return their last step alone, and that are given an input, or what an ``Embedding`` without a mask has made of it:

``last_only``    1.
``rows``         how many rows of the input are looked at.
``padded_rows``  how many of them end in padding; see ``framework.token_padding``.
``padding``      how many tokens, or steps, of padding these end in, on average.
``steps``        of an input of numbers that are no tokens: how many steps of a row are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.keras.first_layers import is_put_together, kind_of, tensor_of, tensors_in
from smd_agent.framework.keras.plain_access import attribute
from smd_agent.framework.step_events import ModelCall, on
from smd_agent.framework.usage import Usage, UsageProbe

_RECURRENT = ("SimpleRNN", "LSTM", "GRU")
# With all their steps.
_OVER_STEPS = (*_RECURRENT, "Bidirectional")
# Each step that they return is of the same step of what they are given.
_STEP_BY_STEP = {
    *("Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "LayerNormalization", "BatchNormalization"),
    *("Dense", "Activation", "ReLU", "LeakyReLU", "TimeDistributed"),
}
# Of a deep model, the inputs go to the first ones.
_MOST = 64


class LastSteps(UsageProbe, domain=INPUTS, doing="looking at which steps of recurrent layers are used"):
    """The recurrent layers of models that are called in one step that is saved.

    Args:
        usage: takes the numbers.
        padding_of: gives the facts of the padding of an input; None of one that has no rows of tokens, or of
            steps of numbers.
    """

    def __init__(self, usage: Usage, padding_of: Callable[[Any], dict[str, Any] | None]) -> None:
        super().__init__(usage, in_training=True)
        self._padding_of = padding_of
        self._told: set[str] = set()

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        if not self.wanted or call.name in self._told:
            return
        self._told.add(call.name)
        for name, i in unmasked_last_steps(call.model, len(call.inputs)):
            numbers = self._padding_of(call.inputs[i])
            if numbers is not None:
                self._usage.save(f"layer/{name}", {"last_only": 1.0, **numbers})


def unmasked_last_steps(model: Any, count: int) -> Iterator[tuple[str, int]]:
    """Yield the recurrent layers of a model whose last step alone is used, without a mask, by name.

    With each comes the number of the model's input that the layer is given, step by step, or whose tokens an
    ``Embedding`` has made that of.

    Args:
        model: it may be of any class; layers are known of those that Keras has put together.
        count: of its inputs.
    """
    layers = attribute(model, "layers", ())[:_MOST]
    if is_put_together(model, "Sequential") and count == 1:
        # Each is given what the one before it has returned; while layers were added, it may have been called often.
        yield from _followed([(layer, [place], [place + 1]) for place, layer in enumerate(layers)], {0: 0})
    elif is_put_together(model, "Functional"):
        inputs = [id(one) for one in tensors_in(attribute(model, "inputs"))]
        if len(inputs) == count:
            calls = [(layer, _ids(layer, "input"), _ids(layer, "output")) for layer in layers]
            yield from _followed(calls, {one: number for number, one in enumerate(inputs)})


def _is_given_a_mask(layer: Any) -> bool:
    """True if Keras 2 has called a layer with one, which is none of its inputs there."""
    nodes = attribute(layer, "_inbound_nodes", None) or ()
    return any((attribute(node, "call_kwargs", None) or {}).get("mask") is not None for node in nodes)


def _ids(layer: Any, name: str) -> list[int]:
    # They live as long as the model.
    return [id(one) for one in tensors_in(tensor_of(layer, name))]


def _followed(
    calls: Iterable[tuple[Any, list[int], list[int]]], inputs: Mapping[int, int]
) -> Iterator[tuple[str, int]]:
    """Follow inputs through layers.

    Args:
        calls: layers, and the tensors that each is given and returns.
        inputs: their numbers, by tensor.
    """
    # Tensors of one step for each of an input, with the number of that.
    steps = dict(inputs)
    for layer, given, made in calls:
        # A mask that it is given, or a state, is a tensor more.
        if len(given) != 1 or len(made) != 1 or _is_given_a_mask(layer):
            continue
        kind = kind_of(layer)
        if kind == "Embedding" and attribute(layer, "mask_zero") is False and given[0] in inputs:
            steps[made[0]] = inputs[given[0]]
        elif given[0] in steps:
            number = steps[given[0]]
            if kind in _STEP_BY_STEP or (kind in _OVER_STEPS and attribute(layer, "return_sequences") is True):
                steps[made[0]] = number
            elif kind in _RECURRENT and attribute(layer, "go_backwards") is False:
                yield attribute(layer, "name"), number
