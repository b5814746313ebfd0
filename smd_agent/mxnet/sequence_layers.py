"""Recurrent layers of Gluon that are called with arrays; see ``framework.sequence_layers``.

Those inside of a hybridized block are called with symbols, which have no sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mxnet.gluon.rnn.rnn_layer import _RNNLayer
from mxnet.ndarray import NDArray

from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.sequence_layers import DIMENSIONS, Given
from smd_agent.framework.sequence_layers import SequenceLayers as AnyLayers
from smd_agent.mxnet.arrays import arrays_in, plain


class SequenceLayers(AnyLayers):
    """The layers of one step that is saved."""

    def given_to(self, layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given | None:
        """Return what a layer is given."""
        given: Any = args[0] if args else None
        if not (is_a(layer, _RNNLayer) and is_a(given, NDArray)):
            return None
        shape, layout = plain(given).shape, attribute(layer, "_layout")
        return Given(shape, layout == "NTC") if len(shape) == DIMENSIONS and type(layout) is str else None

    def batch_of(self, inputs: Any) -> int | None:
        """Return the size of the first axis of the first array that has several."""
        shapes = (plain(array).shape for array in arrays_in(inputs))
        return next((shape[0] for shape in shapes if len(shape) > 1), None)
