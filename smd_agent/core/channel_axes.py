"""Axes of the channels of layers' outputs: set by who captures them, asked for by who reduces them."""

from __future__ import annotations

from collections.abc import Callable

AxisRule = Callable[[int], "int | None"]
"""Tells of a number of dimensions, 2 or more, along which axis the channels are; None: they are not known."""


def last_axis(dimensions: int) -> int | None:
    """The channels are along the last axis, as those of dense layers."""
    return dimensions - 1


def second_axis(dimensions: int) -> int | None:
    """The channels are next to the batch, as those of images may be."""
    return 1


def unknown(dimensions: int) -> int | None:
    """Nothing is known of the channels."""
    return None


class ChannelAxes:
    """The axes of the channels of tensors, by their names.

    A rule holds for all tensors of a base name: ``relu/outputs_1`` is of ``relu/outputs``, and ``Net_relu_output_0`` of
    ``Net_relu_output``.
    """

    def __init__(self) -> None:
        self._rules: dict[str, AxisRule] = {}

    def note(self, base: str, rule: AxisRule) -> None:
        """Have the tensors of a base name go by this rule from now on."""
        self._rules[base] = rule

    def of(self, name: str, dimensions: int) -> int | None:
        """Along which axis the channels of a tensor are, from 0; None where it has none or nobody has said."""
        rule = self._rules.get(name) or self._rules.get(name.rpartition("_")[0])
        axis = None if rule is None or dimensions < 2 else rule(dimensions)
        return axis if axis is not None and 0 <= axis < dimensions else None
