"""Tensors of a step that are not finite, told by whatever statistics of them are known."""

from __future__ import annotations

import numpy as np

from smd_agent.analysis.unusual_tensors import all_finite
from smd_agent.rules.step_view import Names, StepView

# An element that is not finite makes these so, too. The first that is known of a tensor is looked at.
_TELLING = ("", "abs_mean", "l2", "l1", "std", "mean")
_COUNTS = ("nan_count", "inf_count")
_FURTHER = (*_COUNTS, "min", "max")


def not_finite(step: StepView, names: Names) -> dict[str, dict[str, float]]:
    """Return the tensors with elements that are not finite, each with what is known of nan_count and inf_count."""
    left, suspicious = names, []
    for statistic in _TELLING:
        if not left:
            break
        column = step.column(statistic, left)
        suspicious += [column.names[place] for place in np.flatnonzero(~np.isfinite(column.values)).tolist()]
        if len(column.names) == len(left):
            left = ()
        elif column.names:
            left = step.without(left, column.names)
    known: dict[str, dict[str, float]] = {name: {} for name in (*suspicious, *left)}
    # At once for all of them: at the next steps they are the same ones.
    for statistic in (*_TELLING, *_FURTHER) if known else ():
        for name, value in step.column(statistic, tuple(known)).items():
            known[name][statistic] = value
    return {
        name: {count: numbers[count] for count in _COUNTS if count in numbers}
        for name, numbers in known.items()
        if not all_finite(numbers)
    }
