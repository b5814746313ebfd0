"""The settings of a Trainer as its update uses them.

Parameters with the same ``lr_mult`` and ``wd_mult`` are a group.
A schedule is the program's own and may count how often it is asked, so the learning rate is overheard, never asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from smd_agent import guard
from smd_agent.core.failure_domains import SETTINGS
from smd_agent.framework import training_facts as facts
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.plain_access import attribute, bases_of
from smd_agent.framework.replaced_functions import Function, Make, Patch, Until
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.mxnet.plain_access import can_be_trained, parameters_of

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
        self._updated: WeakIdentityMap[Any, bool] = WeakIdentityMap()
        self._rates: WeakIdentityMap[Any, dict[Any, float]] = WeakIdentityMap()
        self._scales: WeakIdentityMap[Any, float] = WeakIdentityMap()
        self._skipped: WeakIdentityMap[Any, bool] = WeakIdentityMap()

    def title_of(self, trainer: Any) -> str:
        """The title of a Trainer: its optimizer's class, with a number behind it where there are several such."""
        self._updated.set(trainer, True)
        name = type(_optimizer_of(trainer)).__name__
        return title_of(trainer, name, lambda other: not self._updated.get(other) and self._is_over(other))

    @SETTINGS.fence("preparing to look at the settings of a Trainer")
    def before_update(self, trainer: Any) -> Callable[[], object]:
        """A Trainer is about to update; the result is to be called when it has done so."""
        scaler, optimizer = attribute(trainer, "_amp_loss_scaler"), _optimizer_of(trainer)
        wanted: list[tuple[type, str, Make, str]] = []
        if scaler is not None:
            # The update itself changes it for the next one.
            self._scales.set(trainer, float(attribute(scaler, "_loss_scale")))
            why = "a scaler tells in its update alone whether that is skipped"
            wanted.append((*_method(scaler, "has_overflow"), partial(self._listen_to_scaler, trainer), why))
        if attribute(optimizer, "lr_scheduler") is not None:
            why = "learning rates of a schedule are saved as an update uses them"
            wanted.append((*_method(optimizer, "_get_lrs"), self._listen, why))
        patches = [Patch(kind, name, make, why=why, until=Until.CALL_RETURNS) for kind, name, make, why in wanted]

        def done() -> None:
            for patch in patches:
                patch.remove()

        return done

    def _listen_to_scaler(self, trainer: Any, original: Function) -> Function:
        def has_overflow(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if type(result) is bool:
                self._skipped.set(trainer, result)
            return result

        return has_overflow

    def _listen(self, original: Function) -> Function:
        def get_lrs(optimizer: Any, indices: Any) -> Any:
            result = original(optimizer, indices)
            self._overhear(optimizer, indices, result)
            return result

        return get_lrs

    @SETTINGS.fence("looking at the learning rate of an update")
    def _overhear(self, optimizer: Any, indices: Any, rates: Any) -> None:
        known = self._rates.get(optimizer)
        if known is None:
            known = self._rates.set(optimizer, {})
        for index, rate in zip(indices, rates, strict=True):
            known.setdefault(index, rate)

    def settings_of(self, trainer: Any) -> dict[str, Any]:
        """The settings by name, as its last update has used them."""
        optimizer, parameters = _optimizer_of(trainer), parameters_of(trainer)
        held = [(own, attribute(optimizer, name)) for name, own in _NAMES.items()]
        common = {own: value for own, value in held if value is not None}
        groups = [
            {**self._rates_of(trainer, indices), **common}
            for indices in groups_of(trainer)
            if can_be_trained(parameters[indices[0]])
        ]
        names = dict.fromkeys(name for group in groups for name in group)
        found = dict(facts.settings(groups, names))
        found["rescale_grad"] = float(attribute(optimizer, "rescale_grad"))
        scale = self._scales.get(trainer)
        if scale is not None:
            found["loss_scale"] = scale
        skipped = self._skipped.get(trainer)
        if skipped is not None:
            found["skipped"] = float(skipped)
        return found

    def _rates_of(self, trainer: Any, indices: list[int]) -> dict[str, float]:
        """Learning rate and weight decay of a group of parameters."""
        optimizer, first = _optimizer_of(trainer), parameters_of(trainer)[indices[0]]
        found = {"weight_decay": attribute(optimizer, "wd") * attribute(first, "wd_mult")}
        if attribute(optimizer, "lr_scheduler") is None:
            return {"lr": attribute(optimizer, "lr") * attribute(first, "lr_mult"), **found}
        known = self._rates.get(optimizer) or {}
        rate = next((known[index] for index in indices if index in known), None)
        if rate is not None:
            return {"lr": rate, **found}
        if self._scales.get(trainer) is None:
            title = self.title_of(trainer)
            line = f"{facts.OPTIMIZER}{title}/lr is not saved: the update has not asked its schedule in this process"
            guard.say_once(("learning rate", title), line)
        return found


def _method(owner: Any, name: str) -> tuple[type, str]:
    """A method and the class that it is from, which is rarely one of the program's."""
    return next(base for base in bases_of(type(owner)) if name in vars(base)), name


def groups_of(trainer: Any) -> list[list[int]]:
    """The indices of a Trainer's parameters by what multiplies their settings; of frozen ones alone come last."""
    found: dict[tuple[float, float], list[int]] = {}
    parameters = parameters_of(trainer)
    frozen = [not can_be_trained(parameter) for parameter in parameters]
    for index in sorted(range(len(frozen)), key=frozen.__getitem__):
        factors = attribute(parameters[index], "lr_mult"), attribute(parameters[index], "wd_mult")
        found.setdefault(factors, []).append(index)
    return [*found.values()]


def _optimizer_of(trainer: Any) -> Any:
    return attribute(trainer, "_optimizer")
