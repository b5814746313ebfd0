"""Axes of the channels of Gluon's blocks' outputs.

A layer with a layout, and a normalization, say it themselves; dense and recurrent layers and embeddings have them last.
Other blocks, such as activations, have them as the layers of their model do: of three dimensions and of four or more,
where all that tell agree. Next to the batch is the only other axis of two.
"""

from __future__ import annotations

from typing import Any

from mxnet.gluon import Block, nn, rnn
from mxnet.gluon.loss import Loss

from smd_agent.core.channel_axes import AxisRule, last_axis, unknown
from smd_agent.core.failure_domains import CHANNELS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.plain_access import attribute, is_a, pairs_of
from smd_agent.framework.step_events import NewModel, Probe, on
from smd_agent.mxnet.plain_access import name_of

_FEATURES = (nn.Dense, nn.Embedding, nn.LayerNorm, rnn.RecurrentCell, rnn.LSTM.__base__)
_SIGNAL = 3


class Channels(Probe, domain=CHANNELS, doing="looking at the channels of blocks"):
    """The channels of what the blocks of one step return.

    Args:
        writer: takes where they are, by the names that outputs are saved under.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._writer = writer
        self.wanted = writer.shares_due()

    @on(NewModel)
    def look_at(self, new: NewModel) -> None:
        """Tell where the channels of a model's blocks are."""
        blocks = new.model.parts()
        told = [_told_by(block) for block in blocks]
        layouts = {layout for layout in map(_layout, blocks) if layout}
        found: dict[int, set[int | None]] = {_SIGNAL: set(), _SIGNAL + 1: set()}
        for layout in layouts:
            found[min(len(layout), _SIGNAL + 1)].add(layout.find("C"))
        if any(is_a(block, _FEATURES) and not _flattens(block) for block in blocks):
            found[_SIGNAL].add(_SIGNAL - 1)
        rule = _like(*(places.pop() if len(places) == 1 else None for places in found.values()))
        named: dict[str, AxisRule] = {}
        for block, own in zip(blocks, told, strict=True):
            known = own or (unknown if is_a(block, Loss) else rule)
            # Blocks may share a name (model zoo: ``prefix=""``).
            name = name_of(block)
            named[name] = unknown if named.get(name, known) is not known else known
        for name, one in named.items():
            self._writer.axes.note(f"{name}_output", one)


def _told_by(block: Block) -> AxisRule | None:
    layout = _layout(block)
    if layout:
        return {len(layout): layout.find("C")}.get
    if is_a(block, (nn.BatchNorm, nn.InstanceNorm, nn.GroupNorm)):
        # A BatchNorm has it among the arguments of its operation; a GroupNorm's is always the second.
        axis = dict(pairs_of(attribute(block, "_kwargs"))).get("axis", 1)
        return _at(axis) if type(axis) is int else None
    return last_axis if is_a(block, _FEATURES) else None


def _layout(block: Any) -> str:
    """Such as ``NCHW``; empty where a block has none."""
    layout = dict(pairs_of(attribute(block, "_kwargs"))).get("layout")
    return layout if type(layout) is str and "C" in layout else ""


def _flattens(block: Any) -> bool:
    return bool(attribute(block, "_flatten", False))


def _at(axis: int) -> AxisRule:
    return lambda dimensions: axis + dimensions if axis < 0 else axis


def _like(of_signals: int | None, of_images: int | None) -> AxisRule:
    def rule(dimensions: int) -> int | None:
        if dimensions == 2:
            return 1
        return of_signals if dimensions == _SIGNAL else of_images

    return rule
