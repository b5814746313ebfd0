"""Calls of ``load_parameters(allow_missing=True, ignore_extra=True)`` of which a block got nothing, for other names.

Such a load raises nothing. It is kept until a step is saved, in which ``loads/<class>`` tells of it, unless the block
has got something by another load, or the program has set a parameter of it, until then.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mxnet
from mxnet.gluon import Block, Parameter
from mxnet.util import is_np_array

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.plain_access import attribute, is_a, pairs_of, text_of
from smd_agent.framework.replaced_functions import Function, is_replaced, replace
from smd_agent.framework.step_events import Probe, StepEnd, on
from smd_agent.framework.tracked_model import free_name
from smd_agent.mxnet.lost_loads import loads
from smd_agent.mxnet.plain_access import blocks_in, own_parameters, parameter_name
from smd_agent.printable import shortened

_MOST_KEPT = 16
_NAMES_KEPT = 3


class _Load(NamedTuple):
    """A load that gave a block nothing; the names are those of the file, and those that the block has."""

    block: weakref.ref[Block]
    given: list[str]
    own: list[str]

    @property
    def is_told(self) -> bool:
        """True if the block is there, and nothing else has given it values."""
        block = self.block()
        return block is not None and _has_got_nothing(block)

    def text(self) -> str:
        """The facts, as JSON text."""
        numbers = {"given": len(self.given), "own": len(self.own), "loaded": 0}
        names = {"not_taken": _first(self.given), "missing": _first(self.own)}
        return json.dumps({**numbers, **names, "by": "load_parameters"})


class PartialLoads:
    """Those of the process."""

    def __init__(self) -> None:
        self._kept: list[_Load] = []

    def install(self) -> None:
        """Begin to take note of them; called again, do nothing."""
        if not is_replaced(Block, "load_parameters"):
            replace(Block, "load_parameters", self._wrap, why="a load that gives a block nothing is told of")

    def take(self) -> dict[str, str]:
        """The facts that are to be told, by class; once each."""
        kept, self._kept = self._kept, []
        loads.notes_all = False
        told: dict[str, str] = {}
        for load in kept:
            if load.is_told:
                told[free_name(type(load.block()).__name__, told.__contains__)] = load.text()
        return told

    def _wrap(self, original: Function) -> Function:
        def load_parameters(block: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(block, *args, **kwargs)
            self._after(block, args, kwargs)
            return result

        return load_parameters

    @PARAMETERS.fence("looking at what a block has loaded")
    def _after(self, block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        file, allows_all = _call(*args, **kwargs)
        if not allows_all or not is_a(file, str) or not _has_got_nothing(block):
            return
        given = _names_in(file)
        # Files without structure have the names of the parameters themselves.
        own = [*_structured(block)] if any("." in name for name in given) else _plain(block)
        # A parameter that is shared has one of its names in the file.
        if given and own and {*given}.isdisjoint(own):
            others = [load for load in self._kept if load.block() is not block]
            self._kept = [*others[1 - _MOST_KEPT :], _Load(weakref.ref(block), given, own)]
            loads.notes_all = True


partial_loads = PartialLoads()


class NothingGiven(Probe, domain=PARAMETERS, doing="looking at what a block has loaded"):
    """The loads that a saved step tells of.

    Args:
        writer: saves them.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._writer = writer

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save those that no step has told of."""
        if CollectionKeys.PARAMETERS in self._writer.collections_due():
            for title, text in partial_loads.take().items():
                self._writer.save_tensors((facts.LOADS + title,), (facts.as_text(text),))


def _call(
    filename: Any, ctx: Any = None, allow_missing: Any = False, ignore_extra: Any = False, *_: Any, **__: Any
) -> tuple[Any, bool]:
    """The file of a call, and whether names that differ raise nothing at all."""
    return filename, allow_missing is True and ignore_extra is True


def _has_got_nothing(block: Block) -> bool:
    """True if no parameter of a block was loaded, or set by the program since another one was."""
    return all(loads.states.get(one) is None for part in blocks_in(block) for one in own_parameters(part))


def _names_in(file: str) -> list[str]:
    load: Callable[[str], Any] = mxnet.npx.load if is_np_array() else mxnet.nd.load
    return [text_of(name, place) for place, (name, _) in enumerate(pairs_of(load(file)))]


def _structured(block: Block, prefix: str = "", depth: int = 64) -> Iterator[str]:
    """The names of a block's parameters in a file."""
    for place, (name, one) in enumerate(pairs_of(attribute(block, "_reg_params"))):
        if is_a(one, Parameter):
            yield prefix + text_of(name, place)
    for place, (name, child) in enumerate(pairs_of(attribute(block, "_children"))):
        if is_a(child, Block) and depth:
            yield from _structured(child, f"{prefix}{text_of(name, place)}.", depth - 1)


def _plain(block: Block) -> list[str]:
    prefix = attribute(block, "_prefix", "")
    return [parameter_name(one).removeprefix(prefix) for part in blocks_in(block) for one in own_parameters(part)]


def _first(names: list[str]) -> list[str]:
    return [shortened(name) for name in names[:_NAMES_KEPT]]
