"""Gradients that are not finite, seen before an update uses them: by their norm, or by a look at a small one."""

from __future__ import annotations

import math
import weakref
from time import perf_counter
from typing import Any

import torch

from smd_agent.formats.series import ABSENT
from smd_agent.framework.plain_access import attribute, is_a
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.own_operations import apart, without_gradients
from smd_agent.pytorch.plain_access import optimized
from smd_agent.pytorch.series.late_rows import Number

# Elements of a gradient that is looked at.
_SMALL = 4096
# Looks before it is known what they take.
_FIRST_LOOKS = 30
# Looks of which the time counts.
_FEW = 10
# Steps between two looks, at most.
_SELDOM = 64
_SHORTEST = 1e-9


class BrokenGradients:
    """Those of a run.

    Args:
        share: of the run's time that looks may take, in steps in which no norm is known.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._samples: WeakIdentityMap[Any, weakref.ref[torch.Tensor]] = WeakIdentityMap()
        self._looked_at = 0.0
        self._every = self._steps_left = 1
        self._looks = 0
        self._cost = 0.0

    def are_used(self, optimizer: Any, norm: Number) -> bool:
        """True if an optimizer is about to use gradients that are not finite, as far as that is known.

        Args:
            optimizer: whose update is about to begin.
            norm: of the gradients; where it is ``ABSENT``, one of them is looked at now and then, if that is quick.
        """
        if norm is ABSENT:
            self._steps_left -= 1
            return self._steps_left <= 0 and self._look(optimizer) and not _may_skip(optimizer)
        return type(norm) is float and norm - norm != 0.0 and not _may_skip(optimizer)

    def _look(self, optimizer: Any) -> bool:
        began = perf_counter()
        reference = self._samples.get(optimizer)
        known = None if reference is None else reference()
        sample = _sample(optimizer, known)
        if sample is not None and sample is not known:
            self._samples.set(optimizer, weakref.ref(sample))
        found = sample is not None and _sum_is_bad(sample)
        ended = perf_counter()
        lasted, self._looked_at = (ended - self._looked_at) / self._every, ended
        # Of the last looks, as the first ones take longer.
        self._cost += (ended - began - self._cost) / _FEW
        self._looks += 1
        often = self._looks < _FIRST_LOOKS
        wanted = math.ceil(self._cost / max(lasted * self._share, _SHORTEST))
        self._every = self._steps_left = 1 if often else min(wanted, _SELDOM)
        return found


def _may_skip(optimizer: Any) -> bool:
    """True if an update does nothing where its gradients have overflowed, as a scaler has told it."""
    return is_a(attribute(optimizer, "found_inf"), torch.Tensor)


@apart
def _sample(optimizer: Any, known: torch.Tensor | None) -> torch.Tensor | None:
    """The first small parameter of an optimizer that has a gradient: a NaN of later ones comes to it."""
    if known is not None and known.grad is not None:
        return known
    for one in optimized(optimizer):
        if one.grad is not None and one.grad.is_cpu and one.grad.numel() <= _SMALL and has_memory(one.grad):
            return one
    return None


@apart
@without_gradients
def _sum_is_bad(parameter: torch.Tensor) -> bool:
    if parameter.grad is None or parameter.grad.layout is not torch.strided or not parameter.grad.is_floating_point():
        return False
    total = float(parameter.grad.sum())
    return total - total != 0.0
