"""Layers inside of compiled regions, whose values a second, eager run of the region shows; a ``LayerSource``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.captured_step import Installed, SaveIO
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.pytorch.compiled.eager_replay import EagerReplay
from smd_agent.pytorch.compiled.unwatchable_layers import Region, say_unwatchable
from smd_agent.pytorch.model.step_counter import StepCounter, counter_of
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.model.watched_calls import WatchedCalls
from smd_agent.pytorch.model.wrappers import Layers
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.plain_access import parts
from smd_agent.pytorch.torch_compile import is_compiling
from smd_agent.pytorch.tracing import graph_task, is_opaque


class CompiledLayers:
    """The layers of the compiled regions of models, in one step.

    Args:
        save_io: saves what a layer gets and returns.
        calls: tells of the calls of modules.
    """

    def __init__(self, save_io: SaveIO, calls: WatchedCalls) -> None:
        self._save_io = save_io
        self._calls = calls

    def watch(self, call: StepCounter, regions: list[Region], layers: Layers, watched: Installed) -> Callable[..., Any]:
        """Save the layers of compiled regions during one call of a model; see ``LayerSource.watch``."""
        run = call.forward
        for region in regions:
            compiled = CompiledRegion(self._save_io, self._calls, call.tracked, region, layers)
            if counter_of(region.owner) is call:
                run = compiled.around(run)
            else:
                watched.on_close(compiled.watch())
        return run


class CompiledRegion:
    """A compiled region and how its layers are saved.

    Args:
        save_io: saves what a layer gets and returns.
        calls: tells of the calls of modules.
        tracked: the model that the region is in.
        region: the region.
        layers: all layers of the model that the step wants, with their names.
    """

    def __init__(
        self, save_io: SaveIO, calls: WatchedCalls, tracked: TrackedModule, region: Region, layers: Layers
    ) -> None:
        self._save_io = save_io
        self._calls = calls
        self._tracked = tracked
        self._region = region
        ends = {id(region.owner), id(region.inner)}
        inside = set() if region.inner is None else {*map(id, parts(region.inner))} - ends
        self._layers = [(name, layer) for name, layer in layers if id(layer) in inside]
        self._name = next((name for name, layer in layers if id(layer) in ends), None)

    def watch(self) -> Callable[[], object]:
        """Save what the region gets and gives, and its layers, until what is returned is called."""

        def before(module: torch.nn.Module, args: Any, kwargs: Any) -> None:
            if self._name is not None:
                self._save_io(self._name, "input", (args, kwargs))

        def after(module: torch.nn.Module, output: Any) -> None:
            if self._name is not None:
                self._save_io(self._name, "output", output)

        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            return self.around(original, (self._region.owner,))

        return self._calls.watch(self._region.owner, before, after, around)

    def around(self, original: Callable[..., Any], own: tuple[torch.nn.Module, ...] = ()) -> Callable[..., Any]:
        """A function that runs the region as ``original`` does, and its replay afterwards.

        Args:
            original: runs it.
            own: what it is given before the region's arguments.
        """
        if self._region.inner is None:
            say_unwatchable(self._tracked, "they are inside a compiled region")

        def run(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or graph_task() != -1:
                return original(*args, **kwargs)
            replay = self._prepare(args[len(own) :], kwargs)
            with self._calls.aside():
                result = original(*args, **kwargs)
            if replay is not None:
                self._save(replay, result)
            return result

        return unseen(run)

    @fence("preparing to save layers of a compiled region", LAYERS)
    def _prepare(self, args: Any, kwargs: Any) -> EagerReplay | None:
        inner = self._region.inner
        return (
            None if inner is None or not self._layers or is_opaque() else EagerReplay(inner, self._layers, args, kwargs)
        )

    @LAYERS.fence("saving layers of a compiled region")
    def _save(self, replay: EagerReplay, output: Any) -> None:
        seen = replay.run(output)
        if isinstance(seen, str):
            say_unwatchable(self._tracked, seen)
            return
        for name, kind, tensors in seen:
            self._save_io(name, kind, tensors)
