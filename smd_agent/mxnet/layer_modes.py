"""Whether a Gluon block is called in training mode, with those of its layers that behave differently then.

``usage/model/<name>/training``    1 if autograd is in training mode, else 0.
``usage/model/<name>/dropout``     the share of its dropout layers that are, of those that drop anything.
``usage/model/<name>/batch_norm``  the share of its batch normalisations that are: but for those with global statistics.

They are those of the step's first call. A block without such layers has no number for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mxnet import autograd
from mxnet.gluon import Block, nn, rnn

from smd_agent.core.domains import MODES
from smd_agent.framework.plain_access import attribute, is_a, pairs_of
from smd_agent.framework.usage import Usage
from smd_agent.mxnet.structure import blocks_in, name_of

_BatchNorm = nn.BatchNorm.__base__
_RecurrentLayer = rnn.LSTM.__base__


class LayerModes:
    """The modes of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._told: set[str] = set()

    @MODES.fence("looking at the mode of a model")
    def before_call(self, model: Block) -> None:
        """A model is about to be called."""
        name = name_of(model)
        if not self._usage.wanted or name in self._told:
            return
        self._told.add(name)
        training = float(autograd.is_training())
        layers = blocks_in(model)
        numbers = {"training": training}
        numbers |= _share("dropout", training, [True for layer in layers if _drops(layer)])
        of_batch = [not _uses_global(layer) for layer in layers if is_a(layer, _BatchNorm)]
        numbers |= _share("batch_norm", training, of_batch)
        self._usage.save(f"model/{name}", numbers)


def _share(kind: str, training: float, can_train: Iterable[bool]) -> dict[str, float]:
    found = [*can_train]
    return {kind: training * sum(found) / len(found)} if found else {}


def _uses_global(layer: Block) -> bool:
    return bool(dict(pairs_of(attribute(layer, "_kwargs"))).get("use_global_stats"))


def _drops(layer: Block) -> bool:
    if is_a(layer, _RecurrentLayer):
        # Between its layers, so that of one there is none.
        return bool(attribute(layer, "_dropout", 0) > 0 and attribute(layer, "_num_layers", 1) > 1)
    return is_a(layer, nn.Dropout) and bool(attribute(layer, "_rate", 0) > 0)
