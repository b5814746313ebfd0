"""Tensors near a call, with the paths by which they are found again: arguments, and variables of the functions above.

What a loss is computed from beside the model's output, such as the labels, is known to nobody before the program calls
what computes it. But it is in a variable of a function that leads to the call, or in a batch that one has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch

from smd_agent.framework.nested_tensors import NOTHING, pairs_in, parts_of
from smd_agent.interpreter.frame_locals import locals_of
from smd_agent.pytorch.arrays import PLAIN_CLASSES
from smd_agent.pytorch.blame.replay import is_known

_DEEPEST = 5
# A data set is no batch.
_LONGEST = 64
_FRAMES = 40


def with_paths(value: Any, path: str, levels: int = _DEEPEST) -> Iterator[tuple[str, torch.Tensor]]:
    """The plain tensors in a value, each with the path that leads to it."""
    if type(value) in PLAIN_CLASSES:
        yield path, value
        return
    if not levels or type(value) in (int, float, str, bool, type(None)):
        return
    pairs: Iterable[tuple[Any, Any]] = pairs_in(value)
    if pairs is NOTHING:
        pairs = enumerate(parts_of(value))
    for place, (key, part) in enumerate(pairs):
        if place >= _LONGEST:
            return
        if type(key) in (str, int):
            yield from with_paths(part, f"{path}[{key!r}]", levels - 1)


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a call was given, with their paths."""
    yield from with_paths(args, "args")
    yield from with_paths(kwargs, "kwargs")


def own_frames(frames: Iterable[FrameType]) -> list[FrameType]:
    """The frames of these, the innermost first, that are none of PyTorch's or the agent's."""
    found = [frame for frame in frames if not is_known(frame.f_code.co_filename)]
    return found[:_FRAMES]


def name_of(frame: FrameType) -> list[str]:
    """File and function of a frame."""
    return [frame.f_code.co_filename, frame.f_code.co_name]


def variables(frame: FrameType) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a frame's variables hold and that no operation with gradients has made, with their paths."""
    for name, value in locals_of(frame).items():
        for path, tensor in with_paths(value, name):
            if type(tensor) is torch.Tensor and tensor.grad_fn is None and not tensor.requires_grad:
                yield path, tensor
