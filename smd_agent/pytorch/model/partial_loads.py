"""Loads of which the module got next to nothing: with ``strict=False``, or of a state that is its own memory.

Such a load raises nothing. It is kept until a step is saved, in which ``loads/<class>`` tells of it, unless the module
has got something by another load until then; at the latest until the run ends.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules.module import _IncompatibleKeys

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.plain_access import is_a, pairs_of
from smd_agent.framework.tracked_model import free_name
from smd_agent.printable import shortened
from smd_agent.pytorch.model.kept_states import kept_states
from smd_agent.pytorch.model.wrappers import class_name, unwrapped
from smd_agent.pytorch.plain_access import held, named_parts, own_dict, parameter_ids

_MOST_KEPT = 16
_NAMES_KEPT = 3
# A normalisation adds this one to what it is given.
_ADDED = "num_batches_tracked"


@dataclass(frozen=True)
class _Load:
    """One load.

    Attributes:
        module: that was to get values, without wrappers around it.
        title: its class.
        numbers: how many names were ``given``, how many the module has of its ``own``, and how many of these were
            ``loaded``; 1 as ``kept`` if they are its own memory, which was trained on since the state was taken.
        not_taken: the first of the given names that the module does not have.
        missing: the first of its own that were not given.
    """

    module: weakref.ref[torch.nn.Module]
    title: str
    numbers: Mapping[str, int]
    not_taken: Sequence[str]
    missing: Sequence[str]


class PartialLoads:
    """Those of the process."""

    def __init__(self) -> None:
        self._kept: list[_Load] = []

    @PARAMETERS.fence("looking at what a module has loaded")
    def after_load(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Take note of a call of ``load_state_dict``.

        Args:
            module: whose it is.
            args, kwargs: its other arguments.
            result: what it has returned.
        """
        state, strict = _call(*args, **kwargs)
        given = pairs_of(state)
        if kept_states.changed(module, state):
            self._keep(module, {"given": len(given), "own": len(given), "loaded": 0, "kept": 1}, (), ())
            return
        if strict and not self._kept:
            return
        if not is_a(result, _IncompatibleKeys):
            # A class of the program's returns something else.
            return
        missing, unexpected = result
        own = {name for name in _own_names(module) if not name.endswith(_ADDED)}
        loaded = len(own.difference(missing))
        if loaded and self._kept:
            self._kept = [load for load in self._kept if not _share(load.module(), module)]
        taken = len(given) - len(unexpected)
        if strict or not given or not own or 2 * loaded >= len(own) or 2 * taken >= len(given):
            return
        numbers = {"given": len(given), "own": len(own), "loaded": loaded}
        self._keep(module, numbers, _first(unexpected), _first(missing))

    def _keep(
        self, module: torch.nn.Module, numbers: Mapping[str, int], not_taken: Sequence[str], missing: Sequence[str]
    ) -> None:
        inner = unwrapped(module)
        load = _Load(weakref.ref(inner), class_name(module), numbers, not_taken, missing)
        others = [load for load in self._kept if load.module() is not inner]
        self._kept = [*others[1 - _MOST_KEPT :], load]

    def save(self, writer: StepWriter) -> None:
        """Save what there is to be told, in a step that is open."""
        if not self._kept or CollectionKeys.PARAMETERS not in writer.collections_due():
            return
        for name, text in self.left():
            writer.save_tensors((name,), (text,))

    def left(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and texts of what there is to be told, once."""
        kept, self._kept = self._kept, []
        told: dict[str, _Load] = {}
        for load in kept:
            # The function that trained it may have returned: what was lost by it is lost all the same.
            if load.module() is not None or "kept" in load.numbers:
                told[free_name(load.title, told.__contains__)] = load
        for title, load in told.items():
            text = json.dumps({**load.numbers, "not_taken": load.not_taken, "missing": load.missing})
            yield facts.LOADS + title, facts.as_text(text)


partial_loads = PartialLoads()


def _call(state_dict: Mapping[str, Any], strict: bool = True, *_: Any, **__: Any) -> tuple[Mapping[str, Any], bool]:
    """Tell what is loaded, and whether a name that differs raises an error."""
    return state_dict, strict


def _own_names(module: torch.nn.Module) -> Iterator[str]:
    """Yield the names that a module's state has; asking for the state would call what the program has hooked there."""
    for prefix, part in named_parts(module):
        transient = own_dict(part).get("_non_persistent_buffers_set", ())
        own = [name for name, _ in held(part, "_parameters")]
        own += [name for name, _ in held(part, "_buffers") if name not in transient]
        yield from (f"{prefix}.{name}" if prefix else name for name in own)


def _share(kept: torch.nn.Module | None, module: torch.nn.Module) -> bool:
    """True if two modules have a parameter together, or one of them is gone."""
    return kept is None or not parameter_ids(kept).isdisjoint(parameter_ids(module))


def _first(names: Sequence[str]) -> list[str]:
    return [shortened(str(name)) for name in names[:_NAMES_KEPT]]
