"""Calls of hybridized blocks in a saved step, with what is inside of them tapped; see ``hybridized``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxnet.gluon import Block, HybridBlock

from smd_agent import guard
from smd_agent.core.failure_domains import LAYERS
from smd_agent.framework.captured_step import CapturedStep
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.replaced_functions import Patch, Until
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet.hybridized import GraphTap, is_active, operation_of, trace_of
from smd_agent.mxnet.plain_access import children, name_of
from smd_agent.mxnet.ports import TrainedBlocks


class TappedCalls:
    """The calls of one step.

    Args:
        blocks: those that are trained; they have the taps.
        step: numbers what is saved.
    """

    def __init__(self, blocks: TrainedBlocks, step: CapturedStep) -> None:
        self._blocks = blocks
        self._step = step

    @unseen
    def run(self, original: Callable[..., Any], block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a block; if it is hybridized, save what is wanted of the blocks inside of it."""
        if not is_a(block, HybridBlock) or not children(block):
            return original(block, *args, **kwargs)
        if operation_of(block) is None:
            return self._run_building(original, block, args, kwargs)
        self._add_tap(block, args)
        try:
            return original(block, *args, **kwargs)
        finally:
            self._remove_tap(block)

    @unseen
    def _run_building(
        self, original: Callable[..., Any], block: HybridBlock, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a block whose operation is made in this call, so that then is the moment to put ours in its place."""

        def wrap_build(build: Callable[..., Any]) -> Callable[..., Any]:
            def build_cache(built: HybridBlock, *build_args: Any) -> Any:
                result = build(built, *build_args)
                if built is block:
                    self._add_tap(block, args)
                return result

            return build_cache

        why = "the operation of a hybridized block is tapped as soon as it is made"
        patch = Patch(HybridBlock, "_build_cache", wrap_build, why=why, until=Until.CALL_RETURNS)
        try:
            return original(block, *args, **kwargs)
        finally:
            patch.remove()
            self._remove_tap(block)

    @LAYERS.fence("looking into a hybridized block")
    def _add_tap(self, block: HybridBlock, args: tuple[Any, ...]) -> None:
        if not is_active(block) or not self._blocks.may_want_inside(block):
            return
        taps = self._blocks.taps
        tap = taps.get(block)
        if tap is None or tap.original is not operation_of(block):
            tap = taps.set(block, GraphTap(block, trace_of(block)))
        names = tap.names(self._step.next_number, self._step.writer.wants)
        if not names:
            return
        if attribute(block, "_callback") is not None:
            name = name_of(block)
            line = f"inputs and outputs of the blocks inside of {name} are not saved: it has a monitor of its own"
            guard.say_once(("monitored", name), line)
            return
        tap.install(block, args, names, self._save_under)

    @LAYERS.fence("leaving a hybridized block")
    def _remove_tap(self, block: HybridBlock) -> None:
        tap = self._blocks.taps.get(block)
        if tap is not None:
            tap.remove(block)

    def _save_under(self, names: list[str], array: Any) -> None:
        self._step.writer.save_tensors(names, [array] * len(names))
