"""Gradients that the program clips while they are multiplied by the scale of the loss.

``usage/optimizer/<title>/clipped_scaled``  1 if they were clipped before a scaler has divided them by its scale, 0 if
                                            they were clipped only afterwards.
``usage/optimizer/<title>/clip_scale``      that scale.
``usage/optimizer/<title>/clip_limit``      the smallest limit that they were clipped to until then.

Of an optimizer that a scaler updates, and whose gradients were clipped in the step. Seen are ``clip_grad_norm_`` and
``clip_grad_value_``, the latter as it stands in ``torch.nn.utils``; before PyTorch 2.6 the former as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.utils import clip_grad

from smd_agent.core.failure_domains import GRADIENT_FACTS
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.step_events import BeforeOptimizer, BeforeUnscaling, StepEnd, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.optimizer_watch import ids_of
from smd_agent.pytorch.own_operations import fence
from smd_agent.pytorch.torch_compile import is_compiling

_INNER = "_clip_grads_with_norm_"


class ClippedGradients(UsageProbe, domain=GRADIENT_FACTS, doing="looking at gradients that are clipped"):
    """The clipped gradients of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        super().__init__(usage, in_training=True)
        # By the ids of parameters, the smallest limit so far.
        self._limits: dict[int, float] = {}
        # By optimizer: its parameters, the scale, and the limit if they were clipped before that was taken away.
        self._unscaled: dict[str, tuple[set[int], float, float | None]] = {}

    @GRADIENT_FACTS.fence("watching how gradients are clipped")
    def install(self, installed: Installed) -> None:
        """Watch until the step closes, if it saves any of this."""
        if not self.wanted:
            return
        places = [(torch.nn.utils, "clip_grad_value_"), (clip_grad, "clip_grad_value_")]
        if hasattr(clip_grad, _INNER):
            # All names of the function lead there.
            places.append((clip_grad, _INNER))
        else:
            places += [(torch.nn.utils, "clip_grad_norm_"), (clip_grad, "clip_grad_norm_")]
        for owner, name in places:
            installed.patch(owner, name, self._wrap_clip, why="gradients may be clipped while they are scaled")

    def _wrap_clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(parameters, *args, **kwargs)
            if not is_a(parameters, (torch.Tensor, list, tuple)):
                # An iterator can be walked only once.
                parameters = [*parameters]
            self._about_to_clip(parameters, args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value")))
            return original(parameters, *args, **kwargs)

        return clip

    @fence("looking at gradients that are clipped", GRADIENT_FACTS)
    def _about_to_clip(self, parameters: Any, limit: Any) -> None:
        # Of one that the program has computed on a device, nobody waits for it.
        if type(limit) not in (int, float):
            return
        for parameter in [parameters] if is_a(parameters, torch.Tensor) else parameters:
            if parameter.grad is not None:
                key = id(parameter)
                self._limits[key] = min(float(limit), self._limits.get(key, float(limit)))

    @on(BeforeUnscaling)
    def before_unscaling(self, unscaling: BeforeUnscaling) -> None:
        """Take note of gradients that are scaled up to now."""
        self._note(unscaling.optimizer, unscaling.scale)

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """The same of an optimizer that unscales them in its own kernel, and is told the scale."""
        scale = attribute(use.optimizer, "grad_scale")
        if scale is not None:
            self._note(use.optimizer, float(scale))

    def _note(self, optimizer: Any, scale: float) -> None:
        title = title_of(optimizer)
        if title not in self._unscaled:
            own = ids_of(optimizer)
            self._unscaled[title] = own, scale, self._limit_of(own)

    def _limit_of(self, own: set[int]) -> float | None:
        return min((self._limits[key] for key in own & self._limits.keys()), default=None)

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what has been seen."""
        unscaled, self._unscaled = self._unscaled, {}
        for title, (own, scale, limit) in unscaled.items():
            later = self._limit_of(own)
            if limit is not None:
                self._save(title, 1, scale, limit)
            elif later is not None:
                self._save(title, 0, scale, later)
        self._limits.clear()

    def _save(self, title: str, clipped_scaled: int, scale: float, limit: float) -> None:
        numbers = {"clipped_scaled": clipped_scaled, "clip_scale": scale, "clip_limit": limit}
        self._usage.save(f"optimizer/{title}", numbers)
