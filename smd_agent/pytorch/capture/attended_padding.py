"""Attention over rows of tokens that end in padding: whether anything hides the padding from it.

``usage/layer/<name>/<fact>``, of the step's first call of an attention of ``torch.nn`` to itself, or of an encoder of
transformers, such as BERT, that is trained, as far as it is given what an ``Embedding`` has made of as many rows and
places; of one with a causal mask only if it has a mask of the places of each row, too:

``padding_read``  without a causal mask: 1 if no mask hides anything, and a gradient comes to the padding, so that the
                  loss depends on it; else 0. Nothing where the embedding is not trained.
``rows``          how many rows are looked at: 64.
``padded_rows``   how many of them end in padding (``capture.token_padding``), all in the same token, which is the
                  embedding's ``padding_idx`` if it has one; the last 256 tokens are looked at.
``padding``       how many tokens of padding these end in, on average.
``span``          by how many tokens the longest row is longer than the shortest one.
``padding_alone`` where there is a mask of the places of each row, with or without a causal one, and rows are padded: 1
                  if in each of these it hides every token and shows all padding, else 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.plain_access import attribute, in_class, is_a
from smd_agent.framework.sequence_layers import DIMENSIONS
from smd_agent.framework.step_events import LayerReturn, ModelReturn, StepEnd, on
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.capture import token_padding
from smd_agent.pytorch.capture.called_modules import CalledModules
from smd_agent.pytorch.capture.token_offsets import AXES, is_whole
from smd_agent.pytorch.own_operations import fence, without_gradients
from smd_agent.pytorch.plain_access import own_dict
from smd_agent.pytorch.tracing import is_opaque

_ATTENTION = torch.nn.MultiheadAttention
_EMBEDDING = torch.nn.Embedding
_PADDING_MASK, _MASK = 3, 5
# Encoders of transformers in which each token sees all others, by the ``model_type`` of their configuration.
_ENCODERS = {
    *("albert", "bert", "big_bird", "camembert", "convbert", "deberta", "deberta-v2", "distilbert", "electra"),
    *("ernie", "layoutlm", "longformer", "megatron-bert", "mobilebert", "modernbert", "mpnet", "roberta"),
    *("roberta-prelayernorm", "roformer", "squeezebert", "xlm-roberta", "xlm-roberta-xl"),
}
_TOKENS, _HIDING = "input_ids", "attention_mask"
# Of a model with many the first ones tell as much as all.
_MOST = 8
# Fewer places have no padding that is told from tokens.
_FEWEST_PLACES = 3
_LARGEST = 1 << 20


@dataclass
class _Embedded:
    """Tokens that an embedding was given.

    Attributes:
        tokens: a copy.
        memory: where they were.
        padding: the token that the embedding knows as padding.
        read: at which of them a gradient has come; None where none has.
    """

    tokens: torch.Tensor
    memory: int
    padding: int | None
    read: torch.Tensor | None = None

    def of(self, attending: _Attending) -> bool | None:
        """Tell whether rows and places have to be swapped to be those of a layer; None if they are others."""
        sizes = tuple(self.tokens.shape)
        if attending.memory is not None:
            return False if (self.memory, sizes) == (attending.memory, attending.sizes) else None
        return False if sizes == attending.sizes else (True if sizes[::-1] == attending.sizes else None)


@dataclass
class _Attending:
    """A layer that looks at rows.

    Attributes:
        sizes: how many rows and places it is given.
        memory: where the tokens are, if it is given these themselves.
        hidden: which places of each row its mask hides; None if it has none.
        sees_all: whether nothing else hides places.
    """

    sizes: tuple[int, int]
    memory: int | None
    hidden: torch.Tensor | None
    sees_all: bool = True


class AttendedPadding(CalledModules, domain=INPUTS, doing="looking at whether padding is hidden from attention"):
    """The attention of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._given: dict[str, _Embedded] = {}
        self._embedded: list[_Embedded] = []
        self._attending: dict[str, _Attending] = {}
        self._handles: list[Any] = []

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is said of a layer, or of what it has made."""
        return self.wanted and (is_a(layer, (_ATTENTION, _EMBEDDING)) or bool(_arguments_of(layer)))

    @on(ModelReturn, LayerReturn)
    def after(self, call: ModelReturn | LayerReturn) -> None:
        """A layer has returned."""
        given = self._given.pop(call.name or "", None)
        if given is not None and is_a(call.outputs, torch.Tensor) and call.outputs.grad_fn is not None:
            self._embedded.append(given)
            self._watch(given, call.outputs)

    def before(self, name: str, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Look at an embedding's tokens, and at what attends to them."""
        if layer is None or is_opaque():
            return
        if is_a(layer, _EMBEDDING):
            tokens: Any = args[0] if args else kwargs.get("input")
            if len(self._embedded) < _MOST and _are_rows(tokens):
                padding = own_dict(layer).get("padding_idx")
                known = padding if type(padding) is int else None
                self._given[name] = _Embedded(tokens.detach().clone(), tokens.data_ptr(), known)
        elif len(self._attending) < _MOST and name not in self._attending:
            looked_at = self._of_attention if is_a(layer, _ATTENTION) else _of_encoder
            found = looked_at(layer, args, kwargs)
            # Of the layers of a model, and of a model in another one, the first tells as much as all.
            if found is not None and found.sizes not in [one.sizes for one in self._attending.values()]:
                self._attending[name] = found
                # The numbers come later, and the line is that of the call.
                self._usage.save(f"layer/{name}", {}, here=True)

    def _of_attention(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Attending | None:
        found = _of_attention(layer, args, kwargs)
        return found if found is not None and any(one.of(found) is not None for one in self._embedded) else None

    def _watch(self, given: _Embedded, out: torch.Tensor) -> None:
        """Note at which tokens gradients come to what an embedding has made of them."""
        place = out.output_nr

        @fence("looking at which tokens a model reads", INPUTS)
        @without_gradients
        def take(gradients: tuple[torch.Tensor | None, ...]) -> None:
            gradient = gradients[place]
            if gradient is not None and has_memory(gradient):
                read = (gradient.detach() != 0).any(-1)
                given.read = read if given.read is None else given.read | read

        assert out.grad_fn is not None
        self._handles.append(out.grad_fn.register_prehook(take))

    @on(StepEnd)
    @without_gradients
    def close(self, _: StepEnd) -> None:
        """Save what the backward passes of the step have shown."""
        for handle in self._handles:
            handle.remove()
        for name, attending in self._attending.items():
            numbers = self._numbers(attending)
            if numbers:
                self._usage.save(f"layer/{name}", numbers)
        self._given.clear()
        self._embedded.clear()

    def _numbers(self, attending: _Attending) -> dict[str, Any]:
        for one in self._embedded:
            is_swapped = one.of(attending)
            if one.read is None or is_swapped is None:
                continue
            tokens, read = (one.tokens.t(), one.read.t()) if is_swapped else (one.tokens, one.read)
            numbers = token_padding.reading(tokens, read, one.padding)
            hidden = attending.hidden
            if hidden is not None:
                numbers["padding_read"] = numbers["padding_read"] * ~hidden.any()
                numbers |= token_padding.hiding(tokens, hidden, one.padding)
            if not attending.sees_all:
                del numbers["padding_read"]
            return numbers
        return {}


def _are_rows(tokens: Any) -> bool:
    return (
        is_a(tokens, torch.Tensor)
        and tokens.dim() == AXES
        and min(tokens.shape) > 1
        and max(tokens.shape) >= _FEWEST_PLACES
        and tokens.numel() <= _LARGEST
        and is_whole(tokens)
        and has_memory(tokens)
    )


def _of_attention(layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Attending | None:
    """The rows that an attention looks at; None if that is another sequence, or only a mask of pairs hides places."""
    query: Any = args[0] if args else kwargs.get("query")
    if not is_a(query, torch.Tensor) or query.dim() != DIMENSIONS:
        return None
    key: Any = args[1] if len(args) > 1 else kwargs.get("key")
    if id(key) != id(query):
        return None
    pairs = args[_MASK] if len(args) > _MASK else kwargs.get("attn_mask")
    sees_all = pairs is None and not kwargs.get("is_causal")
    rows, places = query.shape[:2] if own_dict(layer).get("batch_first") is True else (query.shape[1], query.shape[0])
    mask: Any = args[_PADDING_MASK] if len(args) > _PADDING_MASK else kwargs.get("key_padding_mask")
    if mask is None:
        return _Attending((rows, places), None, None) if sees_all else None
    # A mask of floats is added: what is 0 hides nothing.
    is_known = _can_be_read(mask) and tuple(mask.shape) == (rows, places)
    return _Attending((rows, places), None, mask.detach() != 0, sees_all) if is_known else None


def _of_encoder(layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Attending | None:
    """The rows that an encoder of transformers looks at; None if it is none, or is given something else."""
    names = _arguments_of(layer)
    given: dict[str, Any] = {**dict(zip(names, args, strict=False)), **kwargs}
    tokens: Any = given.get(_TOKENS)
    mask: Any = given.get(_HIDING)
    if not names or not _are_rows(tokens):
        return None
    rows, places = tokens.shape
    if mask is None:
        return _Attending((rows, places), tokens.data_ptr(), None)
    if not _can_be_read(mask) or mask.shape != tokens.shape:
        return None
    return _Attending((rows, places), tokens.data_ptr(), mask.detach() == 0)


def _can_be_read(mask: Any) -> bool:
    return is_a(mask, torch.Tensor) and has_memory(mask)


def _arguments_of(layer: Any) -> tuple[str, ...]:
    """The names of what such an encoder is given; empty for any other module."""
    config = own_dict(layer).get("config")
    kind = attribute(config, "model_type") if config is not None else None
    if type(kind) is not str or kind not in _ENCODERS or attribute(config, "is_decoder") is True:
        return ()
    forward = in_class(type(layer), "forward")
    code = inspect.unwrap(forward).__code__ if type(forward) is FunctionType else None
    names: tuple[str, ...] = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return names if _TOKENS in names and _HIDING in names else ()
