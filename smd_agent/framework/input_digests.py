"""Digests of what a model is called with in a step that is saved; see ``training_facts``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import DIGESTS
from smd_agent.core.ports import StepWriter
from smd_agent.core.reductions import mixed_sum
from smd_agent.core.reductions.mixed import mixed
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import ModelCall, Probe, on


class InputDigests(Probe, domain=DIGESTS, doing="looking at a model's inputs"):
    """The digests of one step.

    Args:
        writer: takes the values.
        digest: gives the digest of what a model is called with, of shape (1,), None where that has none.
    """

    def __init__(self, writer: StepWriter, digest: Callable[[Any], Any | None]) -> None:
        self._writer = writer
        self._digest = digest
        self.wanted = CollectionKeys.INPUT_DIGESTS in writer.collections_due()
        self._calls: dict[str, int] = {}

    @property
    def any(self) -> bool:
        """True if a model was called, in a step that saves them."""
        return bool(self._calls)

    @on(ModelCall)
    def save(self, call: ModelCall) -> None:
        """Save the digest of a model's inputs; none where a call has no tensors."""
        number = self._calls.get(call.name, 0)
        self._calls[call.name] = number + 1
        found = self._digest(call.inputs)
        if found is not None:
            self._writer.save_tensors((f"{facts.INPUT_DIGEST}{call.name}_{number}",), (found,))


def digest(parts: Iterable[tuple[Any, str, Sequence[int]]], library: Any) -> Any:
    """64 bits that are the same for the same arrays in the same order: an int64 array or tensor of shape (1,).

    It is the sum, modulo 2**64, of the words of all arrays, each mixed with its place, see ``core.reductions.mixed``,
    and of their shapes and dtypes, by the place of each array.
    Where the words are on an accelerator, so is the digest.

    Args:
        parts: of each array the bits of the elements that were looked at, as int64 words in one dimension, the name of
            its dtype, and its whole shape.
        library: NumPy or PyTorch.
    """
    found = None
    for number, (words, dtype, shape) in enumerate(parts):
        part = (_mixed_sum(words, library) + _kind(dtype, shape)) * (2 * number + 1)
        found = part if found is None else found + part
    return found


def words_of(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The bits of an array's elements as int64 words, in one dimension."""
    flat = np.ascontiguousarray(array).reshape(-1)
    size = flat.dtype.itemsize
    word = {1: np.int8, 2: np.int16, 4: np.int32}.get(size, np.int64 if size % 8 == 0 else np.int8)
    return flat.view(word).astype(np.int64)


def _mixed_sum(words: Any, library: Any) -> Any:
    if library is np:
        return np.array([mixed_sum(words)])
    if words.device.type == "cpu":
        return library.tensor([mixed_sum(words.numpy())], device="cpu")
    places = library.arange(1, words.shape[0] + 1, dtype=library.int64, device=words.device)
    return mixed(words, places).sum().reshape(1)


def _kind(dtype: str, shape: Sequence[int]) -> int:
    text = f"{dtype} {[*map(int, shape)]}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")
