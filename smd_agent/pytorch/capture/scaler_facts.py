"""By what a ``GradScaler`` multiplies the losses of a step that is saved, and whether it has skipped the update."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import SETTINGS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import is_a, own_dict
from smd_agent.framework.step_events import Probe, StepEnd, on
from smd_agent.pytorch.own_operations import apart, fence, without_gradients
from smd_agent.pytorch.torch_compile import is_compiling


class ScalerFacts(Probe, domain=SETTINGS, doing="saving loss scales"):
    """The facts of one step that is saved.

    Where a scaler has several optimizers, one that it has not updated counts as a skipped update. Of each optimizer the
    first update of the step counts.

    Args:
        writer: takes the values.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._writer = writer
        self.wanted = CollectionKeys.OPTIMIZER in writer.collections_due()
        self._scales: dict[str, float] = {}
        self._skipped: dict[str, dict[int, torch.Tensor]] = {}

    def install(self, installed: Installed, scalers: Iterable[type[Any]]) -> None:
        """Watch these classes until the step closes, if it saves any of this."""
        for scaler in scalers:
            if self.wanted and "step" in vars(scaler):
                installed.patch(scaler, "step", self._wrap_step, why="loss scales and skipped updates are saved")

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what has been seen."""
        scales, self._scales = self._scales, {}
        for title, scale in scales.items():
            self._save(f"{title}/scale", scale)
            skipped = [*self._skipped.pop(title, {}).values()]
            if skipped:
                # Left where it is: nobody waits for a device.
                self._save(f"{title}/skipped", torch.stack([one.to(skipped[0].device) for one in skipped]).amax())

    def _save(self, name: str, value: object) -> None:
        self._writer.save_tensors((f"{facts.OPTIMIZER}{name}",), (value,))

    def _wrap_step(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            watched = not is_compiling()
            if watched:
                self._before(scaler)
            result = original(scaler, optimizer, *args, **kwargs)
            if watched:
                self._after(scaler, optimizer)
            return result

        return step

    @fence("reading the scale of a loss", SETTINGS)
    def _before(self, scaler: Any) -> None:
        # Afterwards the program may have changed it.
        scale = scale_of(scaler)
        if scale is not None:
            self._scales.setdefault(title_of(scaler), scale)

    @SETTINGS.fence("looking at an update that may be skipped")
    @without_gradients
    @apart
    def _after(self, scaler: Any, optimizer: Any) -> None:
        if scale_of(scaler) is None:
            return
        # A scaler tells nobody else. An optimizer with a kernel for this is called, and does nothing.
        states = own_dict(scaler).get("_per_optimizer_states", {})
        found = [*states.get(id(optimizer), {}).get("found_inf_per_device", {}).values()]
        if not found:
            line = f"whether {type(scaler).__name__} skips updates is not saved: it does not tell"
            guard.say_once(("skipped", type(scaler)), line)
            return
        infinite = torch.stack([one.to(found[0].device) for one in found]).sum() > 0
        self._skipped.setdefault(title_of(scaler), {}).setdefault(id(optimizer), infinite.to(torch.float32))


def scale_of(scaler: Any) -> float | None:
    """By what a scaler multiplies losses now; None of one that is not enabled."""
    own = own_dict(scaler)
    if own.get("_enabled") is False:
        return None
    scale: Any = own.get("_scale")
    # Before its first loss it has no tensor yet.
    return float(scale.item() if is_a(scale, torch.Tensor) else own.get("_init_scale", 1.0))
