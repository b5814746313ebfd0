"""What is saved of a compiled region inside a model while a step is saved."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from smd_agent import session
from smd_agent.pytorch.hidden import Region, tell_hidden
from smd_agent.pytorch.opaque import graph_task, is_compiling, is_opaque
from smd_agent.pytorch.patch import Installed
from smd_agent.pytorch.root import SLOT, Root
from smd_agent.pytorch.shadow import Shadow

if TYPE_CHECKING:
    from smd_agent.pytorch.saved_step import SavedStep

Layers = list[tuple[str, torch.nn.Module]]


class CompiledRegion:
    """A compiled region and the step that saves its layers.

    Args:
        step: the step.
        root: the model that the region is in.
        region: the region.
        layers: all layers of the model that the step wants, with their names.
    """

    def __init__(self, step: SavedStep, root: Root, region: Region, layers: Layers) -> None:
        self._step = step
        self._root = root
        self._region = region
        parts = set() if region.inner is None else {*region.inner.modules()} - {region.inner, region.owner}
        self._layers = [(name, layer) for name, layer in layers if layer in parts]
        self._name = next((name for name, layer in layers if layer in (region.owner, region.inner)), None)

    def watch(self, watched: Installed) -> None:
        """Save what the region gets and gives, and its layers, until the model's forward is over."""
        owner = self._region.owner
        call = owner.__dict__.get(SLOT)

        def with_values(*args: Any, **kwargs: Any) -> Any:
            if self._name is not None:
                self._step.save_io(self._name, "input", (args, kwargs))
            output = run(*args, **kwargs)
            if self._name is not None:
                self._step.save_io(self._name, "output", output)
            return output

        run = self.around(call or owner._call_impl)
        owner.__dict__[SLOT] = with_values
        watched.on_close(functools.partial(_restore, owner, call))

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What runs the region as ``original`` does, and its shadow afterwards."""
        if self._region.inner is None:
            tell_hidden(self._root, "they are inside a compiled region")
            return original
        if not self._layers:
            return original

        def run(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or graph_task() != -1:
                return original(*args, **kwargs)
            shadow = self._prepare(args, kwargs)
            output = original(*args, **kwargs)
            if shadow is not None:
                self._save(shadow, output)
            return output

        return run

    @session.fence("preparing to save layers of a compiled region")
    def _prepare(self, args: Any, kwargs: Any) -> Shadow | None:
        inner = self._region.inner
        return None if inner is None or is_opaque() else Shadow(inner, self._layers, args, kwargs)

    @session.fence("saving layers of a compiled region")
    def _save(self, shadow: Shadow, output: Any) -> None:
        seen = shadow.run(output)
        if isinstance(seen, str):
            tell_hidden(self._root, seen)
            return
        for name, kind, tensors in seen:
            self._step.save_io(name, kind, tensors)


def _restore(owner: torch.nn.Module, call: Any) -> None:
    if call is None:
        owner.__dict__.pop(SLOT, None)
    else:
        owner.__dict__[SLOT] = call
