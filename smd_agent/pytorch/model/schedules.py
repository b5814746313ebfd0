"""Schedules of learning rates: which one an optimizer has, how long it is, and how many of its steps were made.

A scheduler is known by its optimizer, weakly, once it has been made. Where nobody tells of those that are made, because
the program makes the hook itself, it is looked for among all objects, once for each optimizer that has one.

The length is known of ``OneCycleLR``, ``CosineAnnealingLR``, ``LinearLR`` and ``PolynomialLR``, of a ``SequentialLR``
that ends with one of these, and of a ``LambdaLR`` as transformers makes it. In a class that is derived from these it
may mean something else. Of any other ``LambdaLR`` the largest whole number is taken that its function refers to, which
need not be the length: a factor comes with it, by which the schedule shows how far it has come.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from torch.optim import lr_scheduler

from smd_agent.core.failure_domains import SETTINGS
from smd_agent.framework.plain_access import elements_of, own_dict, pairs_of
from smd_agent.framework.weak_references import Reference, WeakIdentityMap, to_nothing
from smd_agent.interpreter.living_objects import living
from smd_agent.pytorch.own_operations import fence

_LENGTHS: dict[type, str] = {
    lr_scheduler.OneCycleLR: "total_steps",
    lr_scheduler.CosineAnnealingLR: "T_max",
    lr_scheduler.LinearLR: "total_iters",
    lr_scheduler.PolynomialLR: "total_iters",
}
_OF_TRANSFORMERS = "num_training_steps"


class Schedule(NamedTuple):
    """A schedule, as far as it has come.

    length: how many steps it has.
    steps: how many of them were made.
    factor: where the length is only a number that the function of a schedule refers to: by what the rate is multiplied.
    """

    length: float
    steps: float
    factor: float | None = None


class Schedules:
    """Those of the process.

    Attributes:
        are_told: whether schedulers are told of as they are made.
    """

    def __init__(self) -> None:
        self.are_told = False
        # By optimizer, the scheduler that was made last: one that it has replaced may live on.
        self._last: WeakIdentityMap[Any, Callable[[], Any]] = WeakIdentityMap()

    @fence("looking at a schedule that has been made", SETTINGS)
    def add(self, scheduler: Any) -> None:
        """Take note of a scheduler that has been made."""
        optimizer = own_dict(scheduler).get("optimizer")
        if optimizer is not None:
            self._last.set(optimizer, Reference(scheduler))

    def of(self, optimizer: Any) -> Schedule | None:
        """The schedule of an optimizer; None without one, and of one that has no end."""
        reference = self._last.get(optimizer)
        # A scheduler leaves a function of its own in the optimizer.
        if reference is None and not self.are_told and "step" in own_dict(optimizer):
            reference = self._last.set(optimizer, _looked_for(optimizer))
        scheduler = None if reference is None else reference()
        if scheduler is None:
            return None
        length, steps = length_of(scheduler), _number(own_dict(scheduler).get("last_epoch"))
        factor = None
        if length is None and type(scheduler) is lr_scheduler.LambdaLR:
            length, factor = _largest_number(scheduler), _factor(optimizer)
            length = None if factor is None else length
        return None if length is None or steps is None else Schedule(length, steps, factor)


schedules = Schedules()


def length_of(scheduler: Any) -> float | None:
    """Number of steps that a schedule has; None where it is not known."""
    kind, own = type(scheduler), own_dict(scheduler)
    if kind in _LENGTHS:
        return _number(own.get(_LENGTHS[kind]))
    if kind is lr_scheduler.LambdaLR:
        return _length_by_function([*elements_of(own.get("lr_lambdas"))])
    if kind is lr_scheduler.SequentialLR:
        parts, milestones = ([*elements_of(own.get(name))] for name in ("_schedulers", "_milestones"))
        before = _number(milestones[-1]) if milestones else 0.0
        last = length_of(parts[-1]) if parts else None
        return None if before is None or last is None else before + last
    return None


def _length_by_function(functions: list[Any]) -> float | None:
    if functions and type(functions[0]) is functools.partial:
        return _number(dict(pairs_of(functions[0].keywords)).get(_OF_TRANSFORMERS))
    return None


def _largest_number(scheduler: Any) -> float | None:
    """The largest whole number that the function of a schedule refers to; None where there is none, or no function."""
    functions = [*elements_of(own_dict(scheduler).get("lr_lambdas"))]
    function = functions[0] if functions else None
    found: list[Any] = []
    if type(function) is functools.partial:
        found += [*function.args, *(value for _, value in pairs_of(function.keywords))]
        function = function.func
    if type(function) is MethodType:
        found.append(function.__self__)
        function = function.__func__
    if type(function) is FunctionType:
        found += _referred(function)
        names = function.__code__.co_names
        found += [own_dict(one).get(name) for one in found for name in names if type(one) not in (int, float)]
    return _number(max((one for one in found if type(one) is int), default=None))


def _referred(function: FunctionType) -> list[Any]:
    """The values of variables outside a function, and the defaults of its arguments."""
    known: dict[str, Any] = function.__globals__
    found = [known[name] for name in function.__code__.co_names if name in known]
    found += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            # One that is not filled yet has nothing.
            found.append(cell.cell_contents)
    return found


def _factor(optimizer: Any) -> float | None:
    """The rate of an optimizer's first group, by the one that its schedule has begun with."""
    groups = [*elements_of(own_dict(optimizer).get("param_groups"))]
    first = dict(pairs_of(groups[0])) if groups else {}
    rate, begun = _number(first.get("lr")), _number(first.get("initial_lr"))
    return rate / begun if rate is not None and begun else None


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None


def _looked_for(optimizer: Any) -> Callable[[], Any]:
    found = [one for one in living(lr_scheduler.LRScheduler) if own_dict(one).get("optimizer") is optimizer]
    inner = {id(part) for one in found for part in elements_of(own_dict(one).get("_schedulers"))}
    outer = [one for one in found if id(one) not in inner]
    # Of several nobody knows which one the program goes on with.
    return Reference(outer[0]) if len(outer) == 1 else to_nothing
