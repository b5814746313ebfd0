"""Modes of blocks of Gluon; see ``framework.layer_modes``.

A normalisation that is told to use its running statistics only is never in training mode.
"""

from __future__ import annotations

from mxnet import autograd
from mxnet.gluon import Block, nn, rnn

from smd_agent.core.failure_domains import MODES
from smd_agent.framework.layer_modes import LayerModes as AnyModes
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.plain_access import attribute, is_a, pairs_of
from smd_agent.framework.step_events import LayerReturn, on
from smd_agent.mxnet.plain_access import blocks_in, name_of

_BatchNorm = nn.BatchNorm.__base__
_RecurrentLayer = rnn.LSTM.__base__


class LayerModes(AnyModes, domain=MODES, doing="looking at the mode of a model"):
    """The modes of one step that is saved."""

    @on(LayerReturn)
    def after_block(self, call: LayerReturn) -> None:
        """Save the modes of a block that has returned."""
        self.save(name_of(call.layer), call.layer)

    def modes_of(self, model: Block) -> Modes:
        """Return the modes of a block."""
        training, layers = bool(autograd.is_training()), blocks_in(model)
        dropping = [(training, share) for layer in layers if (share := _dropped(layer)) > 0]
        normalising = [training and not _uses_global(layer) for layer in layers if is_a(layer, _BatchNorm)]
        return Modes(training, dropping, normalising)


def _uses_global(layer: Block) -> bool:
    return bool(dict(pairs_of(attribute(layer, "_kwargs"))).get("use_global_stats"))


def _dropped(layer: Block) -> float:
    """The share of its input that a block drops; 0 for one that is no dropout."""
    if is_a(layer, _RecurrentLayer):
        # Between its layers, so that of one there is none.
        return float(attribute(layer, "_dropout", 0)) if attribute(layer, "_num_layers", 1) > 1 else 0.0
    return float(attribute(layer, "_rate", 0)) if is_a(layer, nn.Dropout) else 0.0
