"""Divergence of latent variables from their prior, as variational autoencoders add it to their loss.

``usage/latent/<i>/<fact>``, of each such term among the nodes next to the loss in the graph of autograd:

``kl``    the Kullback-Leibler divergence of independent normal distributions from the standard one, in nats for each
          sample (first axis): half the sum of ``mean**2 + variance - 1 - log(variance)`` (Kingma and Welling,
          "Auto-Encoding Variational Bayes", 2014, appendix B).
``size``  how many latent variables a sample has.

A term is known by its form: a sum of a square, of a variance, and of that variance's logarithm, of the same shape. So
it is written by hand, and computed by ``torch.distributions.kl_divergence``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import BeforeBackward, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture.graph_behind import nodes_behind, saved_by
from smd_agent.pytorch.own_operations import without_gradients

# The term is added to the loss, so that it is near.
_NODES = 128
_MOST = 4
_PRODUCTS = {"MulBackward0", "DivBackward0"}
_SUMS = {"AddBackward0", "SubBackward0", "RsubBackward1", "NegBackward0"}
_POWER, _EXPONENTIAL, _LOGARITHM = "PowBackward0", "ExpBackward0", "LogBackward0"
# What is added up: the square, the variance and its logarithm; and the sums and factors on the way to them.
_PARTS = 3
_ON_THE_WAY = 16
# A node, and which of its results.
_Part = tuple[Any, int]


class LatentDivergence(UsageProbe, domain=LOSS_FACTS, doing="looking at the divergence of latent variables"):
    """The latent variables behind the losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        self._count = 0

    @on(BeforeBackward)
    @without_gradients
    def before_backward(self, backward: BeforeBackward) -> None:
        """A backward pass is about to start from these."""
        if not self.wanted:
            return
        for latent in latents_behind([one.grad_fn for one in tensors_in(backward.tensors)]):
            if self._count == _MOST:
                return
            self._usage.save(f"latent/{self._count}", latent.numbers())
            self._count += 1


class Latent(NamedTuple):
    """The parameters of the distributions, tensors of one shape.

    parts: what is added up of them.
    """

    parts: frozenset[_Part]
    mean: torch.Tensor
    variance: torch.Tensor

    def numbers(self) -> dict[str, Any]:
        """The facts of the collection ``usage``."""
        divergence = (self.mean.square() + self.variance - 1 - self.variance.log()).sum() / 2
        samples = self.mean.shape[0]
        return {"kl": divergence / samples, "size": self.mean.numel() // samples}


def latents_behind(starts: Iterable[Any]) -> Iterator[Latent]:
    """Yield the latent variables whose divergence is added to what these nodes have made."""
    seen: set[frozenset[_Part]] = set()
    for node in nodes_behind(starts, _NODES):
        latent = _latent_of(node)
        # The same sum without its factor is none of its own.
        if latent is not None and latent.parts not in seen:
            seen.add(latent.parts)
            yield latent


def _latent_of(node: Any) -> Latent | None:
    """The latent variables whose divergence a node has made of each element; None if it has made something else."""
    told = getattr(node, "_input_metadata", None)
    if node.name() not in _SUMS | _PRODUCTS or not told or math.prod(told[0].shape) <= 1:
        return None
    parts = _added_up((node, 0))
    if len(parts) != _PARTS:
        return None
    squares = [part for part in parts if _is_square(part[0])]
    others = [part for part in parts if part not in squares]
    mean = variance = None
    if len(squares) == 1:
        mean, variance = _root_of(squares[0]), _by_exponential(*others)
    elif len(squares) == _PARTS - 1 and others[0][0].name() == _LOGARITHM:
        # Of a variance that is the square of a deviation, and the logarithm of either.
        (of, *_) = _sources(others[0][0])
        of = next(iter(_sources(of[0])), of) if _is_square(of[0]) else of
        own = next((one for one in squares if of in _sources(one[0])), None)
        mean = next((_root_of(one) for one in squares if one is not own), None)
        deviation = None if own is None else _root_of(own)
        variance = None if deviation is None else deviation.square()
    if not is_a(mean, torch.Tensor) or not is_a(variance, torch.Tensor) or mean.shape != variance.shape:
        return None
    fits = mean.dim() > 1 and mean.numel() and has_memory(mean) and has_memory(variance)
    return Latent(frozenset(parts), mean, variance) if fits else None


def _by_exponential(one: _Part, other: _Part) -> torch.Tensor | None:
    """The variance, if of two parts one is the exponential of the other, or of a multiple of it."""
    for exponential, logarithm in ((one, other), (other, one)):
        if exponential[0].name() == _EXPONENTIAL:
            of = _added_up(*_sources(exponential[0]))
            return saved_by(exponential[0], "result") if of == [logarithm] else None
    return None


def _added_up(*sums: _Part) -> list[_Part]:
    """Parts of sums, through factors, in order; none of a sum that has more of them than such a term.

    A sum may come into others many times over, as where each step of a simulation adds to the last one.
    """
    todo = [*sums]
    parts: list[_Part] = []
    for _ in range(_ON_THE_WAY):
        if not todo or len(parts) > _PARTS:
            break
        part = todo.pop(0)
        sources = _sources(part[0])
        if part[0].name() in _SUMS or (part[0].name() in _PRODUCTS and len(sources) == 1):
            todo[:0] = sources
        else:
            parts.append(part)
    return [] if todo else parts


def _sources(node: Any) -> list[_Part]:
    return [(source, number) for source, number in node.next_functions if source is not None]


def _is_square(node: Any) -> bool:
    if node.name() == _POWER:
        return bool(node._saved_exponent == 2)
    sources = _sources(node)
    return node.name() == "MulBackward0" and len(sources) == len({*sources}) + 1


def _root_of(square: _Part) -> torch.Tensor | None:
    found: torch.Tensor | None = saved_by(square[0], "self")
    return found
