"""The settings of a Trainer as its update uses them.

Parameters with the same ``lr_mult`` and ``wd_mult`` are a group.
A schedule is the program's own and may count how often it is asked, so the learning rate is overheard, never asked for.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from mxnet.gluon import Parameter

from smd_agent import guard, session
from smd_agent.core.domains import SETTINGS
from smd_agent.framework import training_facts as facts
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.patching import Function, Patch, Until

# Attributes that MXNet's optimizers may have, and what they are saved as.
_NAMES = {
    "momentum": "momentum",
    "beta1": "beta_1",
    "beta2": "beta_2",
    "epsilon": "eps",
    "eps": "eps",
    "float_stable_eps": "eps",
}


class TrainerSettings:
    """The settings of the Trainers in one saved step.

    Args:
        is_over: tells of a Trainer whether nothing that it trains is in use any more.
    """

    def __init__(self, is_over: Callable[[Any], bool]) -> None:
        self._is_over = is_over
        self._updated: weakref.WeakSet[Any] = weakref.WeakSet()
        self._rates: weakref.WeakKeyDictionary[Any, dict[Any, float]] = weakref.WeakKeyDictionary()
        self._scales: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def title_of(self, trainer: Any) -> str:
        """The title of a Trainer: its optimizer's class, with a number behind it where there are several such."""
        self._updated.add(trainer)
        name = type(trainer._optimizer).__name__
        return title_of(trainer, name, lambda other: other not in self._updated and self._is_over(other))

    @session.fence("preparing to look at the settings of a Trainer", SETTINGS)
    def before_update(self, trainer: Any) -> Callable[[], object]:
        """A Trainer is about to update; the result is to be called when it has done so."""
        scaler = getattr(trainer, "_amp_loss_scaler", None)
        if scaler is not None:
            # The update itself changes it for the next one.
            self._scales[trainer] = float(scaler.loss_scale)
        optimizer = trainer._optimizer
        if getattr(optimizer, "lr_scheduler", None) is None:
            return bool
        why = "learning rates of a schedule are saved as an update uses them"
        return Patch(type(optimizer), "_get_lrs", self._listen, why=why, until=Until.CALL_RETURNS).remove

    def _listen(self, original: Function) -> Function:
        def get_lrs(optimizer: Any, indices: Any) -> Any:
            result = original(optimizer, indices)
            self._overhear(optimizer, indices, result)
            return result

        return get_lrs

    @session.fence("looking at the learning rate of an update", SETTINGS)
    def _overhear(self, optimizer: Any, indices: Any, rates: Any) -> None:
        known = self._rates.setdefault(optimizer, {})
        for index, rate in zip(indices, rates, strict=True):
            known.setdefault(index, rate)

    def settings_of(self, trainer: Any) -> dict[str, Any]:
        """The settings by name, as its last update has used them."""
        optimizer = trainer._optimizer
        common = {own: getattr(optimizer, name) for name, own in _NAMES.items() if hasattr(optimizer, name)}
        groups = [
            {**self._rates_of(trainer, indices), **common}
            for indices in groups_of(trainer)
            if trainer._params[indices[0]].grad_req != "null"
        ]
        names = dict.fromkeys(name for group in groups for name in group)
        found = dict(facts.settings(groups, names))
        found["rescale_grad"] = float(optimizer.rescale_grad)
        if trainer in self._scales:
            found["loss_scale"] = self._scales[trainer]
        return found

    def _rates_of(self, trainer: Any, indices: list[int]) -> dict[str, float]:
        """Learning rate and weight decay of a group of parameters."""
        optimizer, first = trainer._optimizer, trainer._params[indices[0]]
        found = {"weight_decay": optimizer.wd * first.wd_mult}
        if getattr(optimizer, "lr_scheduler", None) is None:
            return {"lr": optimizer.lr * first.lr_mult, **found}
        known = self._rates.get(optimizer, {})
        rate = next((known[index] for index in indices if index in known), None)
        if rate is not None:
            return {"lr": rate, **found}
        if trainer not in self._scales:
            title = self.title_of(trainer)
            line = f"{facts.OPTIMIZER}{title}/lr is not saved: the update has not asked its schedule in this process"
            guard.say_once(("learning rate", title), line)
        return found


def groups_of(trainer: Any) -> list[list[int]]:
    """The indices of a Trainer's parameters by what multiplies their settings; of frozen ones alone come last."""
    found: dict[tuple[float, float], list[int]] = {}
    frozen = [parameter.grad_req == "null" for parameter in trainer._params]
    for index in sorted(range(len(frozen)), key=frozen.__getitem__):
        parameter: Parameter = trainer._params[index]
        found.setdefault((parameter.lr_mult, parameter.wd_mult), []).append(index)
    return [*found.values()]
