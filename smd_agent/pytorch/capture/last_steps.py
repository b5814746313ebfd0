"""Recurrent layers: whether only their last step is used, and whether the rows that they are given end in padding.

``usage/layer/<name>/<fact>``, of the step's first calls of ``RNN``, ``LSTM`` and ``GRU`` of ``torch.nn`` that are
trained: of packed rows, of what an ``Embedding`` before them has made of as many rows and steps, and of other numbers:

``last_only``     1 if of the gradients of the output those of the last step alone are not 0, or if only the final
                  state has one; else 0. Packed rows, and those of a layer of both directions, have another final state:
                  then it is 0 where that has a gradient. Nothing where no gradient has come.
``rows``          how many rows are looked at: all packed ones, else 64.
``padded_rows``   how many of them end in padding (``capture.token_padding``), all in the same token, and do not begin
                  with it in what the layer is given; the last 256 tokens are looked at. Without an embedding, how
                  many end in steps of the same numbers, such as zeros (``token_padding.of_steps``).
``padding``       how many tokens of padding these end in, on average.
``steps``         without an embedding: how many steps of a row are looked at.
``shorter_rows``  of packed rows: how many are shorter than the longest one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.utils.rnn import PackedSequence

from smd_agent.core.failure_domains import INPUTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.sequence_layers import DIMENSIONS
from smd_agent.framework.step_events import LayerReturn, ModelReturn, StepEnd, on
from smd_agent.framework.token_padding import PLACES, ROWS
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture import token_padding
from smd_agent.pytorch.capture.called_modules import CalledModules
from smd_agent.pytorch.capture.token_offsets import AXES, is_whole
from smd_agent.pytorch.own_operations import fence, without_gradients
from smd_agent.pytorch.plain_access import own_dict
from smd_agent.pytorch.tracing import is_opaque

_RECURRENT = torch.nn.RNNBase
_LAYERS = (_RECURRENT, torch.nn.Embedding)
# Of a deep model the first ones tell as much as all.
_MOST = 8
# Fewer steps have no padding that is told from tokens.
_FEWEST_STEPS = 3
_Sizes = tuple[int, ...]


class _Given(NamedTuple):
    """The rows that a recurrent layer was given.

    numbers: facts of it.
    steps: the axis of the output that the steps lie along.
    before_last: how many places along it come before the last step.
    states_are_others: whether final states are not those of the last step.
    """

    numbers: dict[str, Any]
    steps: int
    before_last: int
    states_are_others: bool


class _Used:
    """Gradients of a layer's output: tensors of whether any was not 0; None where none has come."""

    def __init__(self) -> None:
        self.last: torch.Tensor | None = None
        self.before: torch.Tensor | None = None
        self.states: torch.Tensor | None = None

    def last_only(self, states_are_others: bool) -> torch.Tensor | None:
        """True if nothing but the last step has one; None if nothing has."""
        last, states = self.last, self.states
        if states is not None and states_are_others:
            last = torch.zeros_like(states) if last is None else last & ~states
        elif states is not None:
            last = states if last is None else last | states
        return last if last is None or self.before is None else last & ~self.before


class LastSteps(CalledModules, domain=INPUTS, doing="looking at which steps of recurrent layers are used"):
    """The recurrent layers of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        # The ends of tokens along both axes, by the shape of what an embedding was given last.
        self._tokens: dict[_Sizes, tuple[torch.Tensor, ...]] = {}
        self._given: dict[str, _Given] = {}
        self._used: dict[str, tuple[_Used, bool]] = {}
        self._handles: list[Any] = []

    def looks_at(self, layer: torch.nn.Module) -> bool:
        """True if something is said of a layer, or of what it has made."""
        return self.wanted and is_a(layer, _LAYERS)

    @on(ModelReturn, LayerReturn)
    def after(self, call: ModelReturn | LayerReturn) -> None:
        """A model or a layer has returned."""
        given = self._given.pop(call.name or "", None)
        if given is not None and call.name is not None and type(call.outputs) is tuple and len(call.outputs) == 2:
            self._follow(call.name, given, *call.outputs)

    def before(self, name: str, layer: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Look at an embedding's tokens, and at a recurrent layer."""
        if not is_a(layer, _LAYERS) or is_opaque():
            return
        given: Any = args[0] if args else kwargs.get("input")
        if not is_a(layer, _RECURRENT):
            self._take_tokens(given)
        elif name not in self._used and len(self._used) < _MOST:
            found = _packed(given) if is_a(given, PackedSequence) else self._plain(layer, given)
            if found is not None:
                self._given[name] = found

    def _take_tokens(self, tokens: Any) -> None:
        if is_a(tokens, torch.Tensor) and tokens.dim() == AXES and is_whole(tokens) and has_memory(tokens):
            self._tokens[tuple(tokens.shape)] = tuple(rows[:ROWS, -PLACES:].clone() for rows in (tokens.t(), tokens))

    def _plain(self, layer: torch.nn.Module, given: Any) -> _Given | None:
        """The facts of rows that are not packed; None where they have none."""
        if not is_a(given, torch.Tensor) or given.dim() != DIMENSIONS or not has_memory(given) or not given.numel():
            return None
        told = own_dict(layer)
        steps = 1 if told.get("batch_first") is True else 0
        if given.shape[steps] < _FEWEST_STEPS:
            return None
        sizes = (given.shape[0], given.shape[1])
        if sizes in self._tokens:
            # Tokens that come in rows may have been turned for a layer that has the time first.
            tokens = None if sizes[0] == sizes[1] and not steps else self._tokens[sizes][steps]
        else:
            tokens = self._tokens[sizes[::-1]][1 - steps] if sizes[::-1] in self._tokens else None
        if tokens is None:
            values = given.detach() if steps else given.detach().transpose(0, 1)
            numbers = token_padding.of_steps(values)
        elif tokens.device != given.device:
            return None
        else:
            first, second = (given.select(steps, place)[: tokens.shape[0]] for place in (0, 1))
            numbers = token_padding.padding(tokens, ~(first == second).all(-1))
        return _Given(numbers, steps, given.shape[steps] - 1, told.get("bidirectional") is True)

    def _follow(self, name: str, given: _Given, out: Any, states: Any) -> None:
        out = out.data if is_a(out, PackedSequence) else out
        if not is_a(out, torch.Tensor) or out.grad_fn is None:
            return
        used = _Used()
        self._used[name] = used, given.states_are_others
        self._usage.save(f"layer/{name}", given.numbers, here=True)

        @without_gradients
        def saw_output(gradient: torch.Tensor) -> None:
            gradient = gradient.detach()
            count = gradient.shape[given.steps] - given.before_last
            last = gradient.narrow(given.steps, given.before_last, count)
            used.last = _or(used.last, last)
            used.before = _or(used.before, gradient.narrow(given.steps, 0, given.before_last))

        @without_gradients
        def saw_state(gradient: torch.Tensor) -> None:
            used.states = _or(used.states, gradient.detach())

        self._watch(out, saw_output)
        for state in tensors_in(states):
            self._watch(state, saw_state)

    def _watch(self, tensor: torch.Tensor, saw: Callable[[torch.Tensor], None]) -> None:
        """Have a function called with each gradient that backward passes give to a tensor."""
        place = tensor.output_nr

        @fence("looking at which steps of a recurrent layer are used", INPUTS)
        def take(gradients: tuple[torch.Tensor | None, ...]) -> None:
            gradient = gradients[place]
            if gradient is not None and has_memory(gradient):
                saw(gradient)

        if tensor.grad_fn is not None:
            self._handles.append(tensor.grad_fn.register_prehook(take))

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what the backward passes of the step have shown."""
        for handle in self._handles:
            handle.remove()
        for name, (used, states_are_others) in self._used.items():
            found = used.last_only(states_are_others)
            if found is not None:
                self._usage.save(f"layer/{name}", {"last_only": found.to(torch.float32)})
        self._tokens.clear()
        self._given.clear()


def _packed(given: Any) -> _Given | None:
    sizes = given.batch_sizes.tolist()
    if len(sizes) < AXES:
        return None
    numbers = {"rows": sizes[0], "shorter_rows": sizes[0] - sizes[-1]}
    return _Given(numbers, 0, sum(sizes[:-1]), True)


def _or(found: torch.Tensor | None, gradient: torch.Tensor) -> torch.Tensor:
    is_any = (gradient != 0).any()
    return is_any if found is None else found | is_any
