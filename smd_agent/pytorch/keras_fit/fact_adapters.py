"""Variables of Keras on PyTorch and inputs of models, as the facts of a training step look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from smd_agent.framework.model_inputs import Numbers
from smd_agent.framework.sequence_layers import DIMENSIONS
from smd_agent.framework.token_padding import PLACES, ROWS
from smd_agent.pytorch.arrays import numbers_in
from smd_agent.pytorch.capture.fact_adapters import Weights, digest_of
from smd_agent.pytorch.capture.model_inputs import numbers_of_inputs
from smd_agent.pytorch.capture.token_offsets import AXES, is_whole
from smd_agent.pytorch.capture.token_padding import of_steps, padding
from smd_agent.pytorch.own_operations import without_gradients


class Look(Weights):
    """Variables before and after an update, and what models are called with."""

    def owned_by(self, optimizer: Sequence[Any]) -> list[Any]:
        """Variables, which stand for the optimizer that updates them."""
        return list(optimizer)

    def size_of(self, parameter: Any) -> int:
        """Number of elements of a variable."""
        return int(parameter.value.numel())

    def sample(self, parameter: Any) -> torch.Tensor | None:
        """A copy of what is looked at of a variable; see ``Weights``."""
        return super().sample(parameter.value)

    def digest_of(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """The digest of the tensors that a model is called with; None where there are none."""
        return digest_of(inputs)

    def numbers_of(self, inputs: Sequence[torch.Tensor], most: int) -> Iterator[tuple[int, Numbers]]:
        """The numbers of each of the first inputs that has numbers, by its place."""
        return numbers_of_inputs(inputs, most)

    def padding_of(self, given: torch.Tensor) -> Numbers | None:
        """The facts of the padding of an input; None of one that has no rows of tokens, or of steps of numbers."""
        if given.numel() and given.dim() == DIMENSIONS:
            return of_steps(given.detach())
        is_of_tokens = given.dim() == AXES and is_whole(given) and 0 not in given.shape
        return padding(given[:ROWS, -PLACES:]) if is_of_tokens else None

    def numbers_in(self, inputs: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
        """The inputs that have numbers and can be read."""
        return numbers_in(inputs)

    @without_gradients
    def as_floats(self, part: torch.Tensor) -> npt.NDArray[np.float32]:
        """A copy of a part of such an input."""
        found: npt.NDArray[np.float32] = part.to("cpu", torch.float32, copy=True).numpy()
        return found
