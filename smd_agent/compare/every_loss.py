"""Losses of every training step of two runs, saved or not, and the first step at which they differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smd_agent.analysis.trial import Trial
from smd_agent.core.modes import ModeKeys

_LOSS = "series/loss"


class LossesApart(NamedTuple):
    """The first step at which losses differ: the step as its mode counts it, and both losses, which may be NaN."""

    mode: ModeKeys
    step: int
    here: float
    there: float


def first_loss_apart(here: Trial, there: Trial) -> LossesApart | None:
    """Return the first step at which the losses of a worker differ; None where no step that both have tells so."""
    found: list[tuple[int, LossesApart]] = []
    others = there.series_of_steps()
    for worker, own in here.series_of_steps().items():
        other = others.get(worker)
        if other is None or _LOSS not in own or _LOSS not in other:
            continue
        for mode in ModeKeys:
            rows, its = (np.flatnonzero((one.modes == mode.value) & one.is_there(_LOSS)) for one in (own, other))
            steps, at, its_at = np.intersect1d(own.mode_steps[rows], other.mode_steps[its], return_indices=True)
            mine, theirs = own[_LOSS][rows[at]], other[_LOSS][its[its_at]]
            apart = np.flatnonzero((mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs)))
            if apart.size:
                first = int(apart[0])
                losses = LossesApart(mode, int(steps[first]), float(mine[first]), float(theirs[first]))
                found.append((int(own.steps[rows[at[first]]]), losses))
    return min(found, key=lambda one: one[0])[1] if found else None
