"""Parameters of blocks that a model holds in plain lists or dicts, so that neither it nor a Trainer knows of them.

They are told of in the facts of the model's parameters, with ``"registered": false``: those that are to be trained,
were given to no Trainer and loaded from no file, belong to no other model, and have not changed since a saved step
before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from mxnet.gluon import Block, HybridBlock, Parameter

from smd_agent.framework.plain_access import is_a, own_dict
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.mxnet.lost_loads import loads
from smd_agent.mxnet.plain_access import (
    blocks_in,
    can_be_trained,
    own_parameters,
    parameter_name,
    trainer_of,
    values_of,
)
from smd_agent.mxnet.reached_parameters import has_unused_gradient
from smd_agent.mxnet.step_counter import TrackedBlock

# The prefix keeps Gluon from counting it.
_OWN = frozenset(own_dict(HybridBlock(prefix="own_")))
# Of one container, and of containers inside of each other.
_ELEMENTS = 256
_DEPTH = 3
# A single one is held like that to keep it out of the model on purpose.
_FEWEST = 2


class _First(NamedTuple):
    """A parameter as it was at the first saved step; weakly, as the program may let go of it."""

    parameter: weakref.ref[Parameter]
    version: bytes


_known: WeakIdentityMap[Block, dict[int, _First]] = WeakIdentityMap()


class UnregisteredParameters:
    """Those of the models of one saved step.

    Args:
        owned: gives the ids of the parameters of all models that are known.
        version_of: gives a digest of a parameter's values.
    """

    def __init__(self, owned: Callable[[], set[int]], version_of: Callable[[Parameter], bytes]) -> None:
        self._owned = owned
        self._version_of = version_of
        self._found: set[int] = set()

    def have_gradient(self, parameter: Parameter) -> bool:
        """True if a parameter is one of them, and a backward pass has reached it."""
        return id(parameter) in self._found and has_unused_gradient(parameter)

    def of_model(self, tracked: TrackedBlock) -> list[tuple[str, Parameter]]:
        """Those of a model by name, at a step that is saved."""
        names = {name for name, _ in tracked.parameters()}
        found = [] if tracked.model is None else [*self._unchanged(tracked.model)]
        found = [(name, parameter) for name, parameter in found if name not in names]
        self._found.update(id(parameter) for _, parameter in found)
        return found

    def _unchanged(self, model: Block) -> Iterator[tuple[str, Parameter]]:
        held = [one for one in _held_by(model) if _is_left(one)]
        if not held:
            return
        known, owned = _known.get(model) or _known.set(model, {}), self._owned()
        for parameter in held:
            if id(parameter) in owned:
                continue
            first, version = known.get(id(parameter)), self._version_of(parameter)
            if first is None or first.parameter() is not parameter:
                known[id(parameter)] = _First(weakref.ref(parameter), version)
            elif first.version == version:
                yield parameter_name(parameter), parameter


def _is_left(parameter: Parameter) -> bool:
    """True if nothing but a mistake would keep a parameter as it is."""
    is_loaded = loads.states.get(parameter) is not None
    return can_be_trained(parameter) and trainer_of(parameter) is None and bool(values_of(parameter)) and not is_loaded


def _held_by(model: Block) -> list[Parameter]:
    """The parameters of blocks in containers of Python's that blocks of a model hold, each once.

    Of a container that holds a single block nothing is said; that is how programs hide one on purpose.
    """
    blocks = blocks_in(model)
    seen = {id(block) for block in blocks}
    known = {id(parameter) for block in blocks for parameter in own_parameters(block)}
    found: dict[int, Parameter] = {}
    for block in blocks:
        for held in _held(block):
            for part in blocks_in(held):
                if id(part) not in seen:
                    seen.add(id(part))
                    # It may hold others in the same way.
                    blocks.append(part)
                    found.update((id(one), one) for one in own_parameters(part) if id(one) not in known)
    return [*found.values()]


def _held(block: Block) -> list[Block]:
    """Blocks in the containers that are a block's attributes."""
    if type(block).__module__.partition(".")[0] == "mxnet":
        return []
    found = []
    for name, value in [*own_dict(block).items()]:
        if name not in _OWN and _is_plain(value):
            blocks = [*_in(value, _DEPTH, set())]
            if len(blocks) >= _FEWEST:
                found += blocks
    return found


def _in(container: Any, depth: int, seen: set[int]) -> Iterator[Block]:
    if id(container) in seen:
        return
    seen.add(id(container))
    values: Iterable[Any] = container.values() if type(container) is dict else container
    for value in [*islice(values, _ELEMENTS)]:
        if _is_plain(value) and depth > 1:
            yield from _in(value, depth - 1, seen)
        elif is_a(value, Block):
            yield value


def _is_plain(value: object) -> bool:
    """True if something is one of Python's containers."""
    kind = type(value)
    return kind is list or kind is tuple or kind is dict
