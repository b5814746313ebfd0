"""The axis of the channels of Keras's layers' outputs: the last one, unless a layer says otherwise."""

from __future__ import annotations

from smd_agent.core.channel_axes import AxisRule, ChannelAxes, last_axis, second_axis, unknown
from smd_agent.framework.keras.plain_access import own_attributes
from smd_agent.framework.keras.types import Layer
from smd_agent.framework.plain_access import is_a

_FIRST, _LAST = "channels_first", "channels_last"
_BY_AXIS = ("BatchNormalization", "SyncBatchNormalization", "GroupNormalization")


class LayerChannels:
    """The channels of what the layers of one Keras return.

    Args:
        axes: takes where they are, by name.
    """

    def __init__(self, axes: ChannelAxes) -> None:
        self._axes = axes
        self._some_are_first = False

    def saw(self, base: str, layer: Layer) -> None:
        """A layer is called; its outputs have this base name."""
        self._axes.note(base, self._rule(layer))

    def _rule(self, layer: Layer) -> AxisRule:
        form = own_attributes(layer).get("data_format")
        if form == _FIRST:
            self._some_are_first = True
            return second_axis
        if form == _LAST:
            return last_axis
        axis = own_attributes(layer).get("axis")
        if type(layer).__name__ in _BY_AXIS and is_a(axis, int):
            return lambda dimensions: axis + dimensions if axis < 0 else axis
        return _of_features if self._some_are_first else last_axis


def _of_features(dimensions: int) -> int | None:
    """The axis of features; where images have their channels first, an activation does not tell what it is of."""
    return last_axis(dimensions) if dimensions == 2 else unknown(dimensions)
