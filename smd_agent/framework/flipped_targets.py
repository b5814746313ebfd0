"""Images that a model is given, and targets with a number for each of their pixels that fit them when flipped.

``usage/target/<loss>_<i>/<fact>``, of a loss whose target is as high and as wide as the images that a model of the step
was called with last, each a number of images:

``images``     how many are looked at: up to 16, of 16 by 16 pixels or more.
``fitting``    of how many the target fits clearly better as it is than flipped.
``flipped``    of how many it fits clearly better flipped: upside down, left to right or both; where images are square
               also turned by a quarter, or with rows for columns.
``by_chance``  of how many the target of the image before it, flipped, fits clearly better than their own as it is.

How well a target fits is the square of its correlation with the channel of the image that it fits best, at up to 32 by
32 places and of up to 3 channels. One that explains a tenth of the variance, and 4 times as much as another one, fits
clearly better than that. A target with several channels is looked at by the first of them.

Arrays are those of NumPy, or tensors of PyTorch without gradients, whose numbers stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

_IMAGES, _CHANNELS, _PLACES = 16, 3, 32
# Of an image with fewer pixels a correlation may be chance.
_SMALLEST = 16
_FEWEST_IMAGES = 2
_DIMENSIONS = (3, 4)
_EXPLAINED = 0.1
_CLEARLY = 4
# Below the sum of squares of anything that is no constant.
_TINY = 1e-12


class _Found(NamedTuple):
    """Images that a model was given.

    shape: how many there are, and their height and width.
    part: floats of shape (images, channels, rows, columns), at the places that are looked at.
    """

    shape: tuple[int, int, int]
    part: Any


class Images:
    """The images that models of a step were called with last.

    Args:
        as_floats: gives a copy of a part of an input, in float32.
        library: NumPy or PyTorch, of which the copies and the targets are.
    """

    def __init__(self, as_floats: Callable[[Any], Any], library: Any = np) -> None:
        self._as_floats = as_floats
        self._library = library
        self._found: _Found | None = None

    def take(self, inputs: Iterable[Any]) -> None:
        """Remember the first of a call's inputs that has images, which are floats or integers that can be read.

        Where none has, those of the call before stay: a model may be called in parts.
        """
        for one in inputs:
            size = tuple(one.shape)
            if len(size) not in _DIMENSIONS:
                continue
            # Of four axes the shorter one of the second and the last is that of the channels.
            is_last = len(size) == max(_DIMENSIONS) and size[1] > size[-1]
            channels = [] if len(size) == min(_DIMENSIONS) else [slice(_CHANNELS)]
            height, width = size[1:3] if is_last or not channels else size[2:]
            if size[0] >= _FEWEST_IMAGES and min(height, width) >= _SMALLEST:
                places = (slice(None, None, _stride(height)), slice(None, None, _stride(width)))
                where = (slice(_IMAGES), *places, *channels) if is_last else (slice(_IMAGES), *channels, *places)
                part = one[where]
                self._found = _Found((size[0], height, width), self._in_order(self._as_floats(part), is_last))
                return

    @property
    def looked_at(self) -> Any | None:
        """The part that is remembered; None where there were none."""
        return None if self._found is None else self._found.part

    def clear(self) -> None:
        """Forget them."""
        self._found = None

    def compared(self, target: Any) -> dict[str, Any]:
        """The facts of a target; none where it is not as large as the images."""
        masks = None if self._found is None else _masks(target, self._found.shape)
        if masks is None or self._found is None:
            return {}
        images = self._unit(self._found.part)
        with np.errstate(all="ignore"):
            planes = [self._unit(one)[:, None] for one in self._flips(masks[:_IMAGES])]
            straight, *others = [self._fit(images, plane) for plane in planes]
            flipped = self._best(others)
            by_chance = self._best(self._fit(images, self._library.roll(plane, 1, 0)) for plane in planes[1:])
            return {
                "images": min(self._found.shape[0], _IMAGES),
                "fitting": _is_clearly_better(straight, flipped).sum(),
                "flipped": _is_clearly_better(flipped, straight).sum(),
                "by_chance": _is_clearly_better(by_chance, straight).sum(),
            }

    def _in_order(self, part: Any, is_last: bool) -> Any:
        """The same with the channels before the places; images of one channel may come without it."""
        if len(part.shape) == min(_DIMENSIONS):
            return part[:, None]
        return self._library.moveaxis(part, -1, 1) if is_last else part

    def _flips(self, masks: Any) -> list[Any]:
        """Planes at the places that are looked at, as they are and flipped in all ways."""
        flip, (height, width) = self._library.flip, masks.shape[1:]
        down, along = _stride(height), _stride(width)
        # Where the same places are in the flipped planes.
        rows, columns = slice((height - 1) % down, None, down), slice((width - 1) % along, None, along)
        found = [
            masks[:, ::down, ::along],
            flip(masks[:, rows, ::along], (1,)),
            flip(masks[:, ::down, columns], (2,)),
            flip(masks[:, rows, columns], (1, 2)),
        ]
        return found + [self._library.swapaxes(one, 1, 2) for one in found] if height == width else found

    def _unit(self, planes: Any) -> Any:
        """Planes, the last two axes, less their means and of length 1; all 0 where they are constant."""
        planes = self._library.asarray(planes, dtype=self._library.float32)
        flat = planes.reshape(*planes.shape[:-2], -1)
        flat = flat - flat.mean(-1)[..., None]
        lengths = (flat * flat).sum(-1)[..., None] ** 0.5
        return self._library.where(lengths > _TINY, flat / (lengths + _TINY), 0.0 * flat)

    def _fit(self, images: Any, masks: Any) -> Any:
        """The share of the variance of each mask that the best channel of its image explains."""
        return self._library.amax((images * masks).sum(-1) ** 2, 1)

    def _best(self, fits: Iterable[Any]) -> Any:
        return reduce(self._library.maximum, fits)


def _masks(target: Any, shape: tuple[int, int, int]) -> Any | None:
    """The planes of a target, of shape (images, rows, columns); None of one of another size."""
    size = tuple(target.shape)
    count, height, width = shape
    if math.prod(size) == math.prod(shape):
        return target.reshape(shape)
    if len(size) == max(_DIMENSIONS) and size[0] == count:
        if size[2:] == (height, width):
            return target[:, 0]
        if size[1:3] == (height, width):
            return target[..., 0]
    return None


def _stride(size: int) -> int:
    return -(-size // _PLACES)


def _is_clearly_better(one: Any, other: Any) -> Any:
    return (one > _EXPLAINED) & (one > _CLEARLY * other)
