"""Margins of rows that an XGBoost training begins with: factors where they ought to be logarithms.

An objective with a logarithmic link multiplies its expectation by the exponential of the margin. An exposure, such as
years or kilometres, is therefore given as its logarithm. Whether labels go with the margins themselves or with a power
of their exponentials is told by the test of Vuong for two models of which neither contains the other, Econometrica 57
(1989), pages 307 to 333, with the likelihood of counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

_OBJECTIVES = ("count:poisson", "reg:gamma", "reg:tweedie")
_MOST_ROWS = 200_000
_STEPS = 30
# No smaller expectation has a logarithm that can be used.
_LEAST = 1e-300


def facts_of_margins(data: xgboost.DMatrix, labels: Any, objective: str) -> dict[str, float]:
    """The facts of the margins of a training's rows.

    Args:
        data: of the training.
        labels: the same as of ``data``.
        objective: its name.

    Returns:
        ``over_logarithm`` and ``over_power``: by how many standard errors labels that are proportional to the margins
        are likelier than labels that are proportional to the margins' exponentials, and than such to the best power of
        them. Nothing where margins are not all above 0 and finite, are all the same, or where labels are below 0, and
        nothing of objectives without a logarithmic link.
    """
    margins = np.asarray(data.get_base_margin(), np.float64)
    if objective not in _OBJECTIVES or not margins.size == labels.size > 0 or labels.ndim != 1:
        return {}
    weights = np.asarray(data.get_weight(), np.float64)
    weights = weights if weights.size == labels.size else np.ones(labels.size)
    stride = -(-labels.size // _MOST_ROWS)
    margins, labels, weights = (each.reshape(-1)[::stride] for each in (margins, labels.astype(np.float64), weights))
    if not (np.isfinite(margins).all() and margins.min() > 0 and np.ptp(margins) and labels.min() >= 0):
        return {}
    if not labels.any() or not weights.all():
        return {}
    as_factors = _scaled(margins, labels, weights)
    powers = {"over_logarithm": 1.0, "over_power": _best_power(margins, labels, weights)}
    found = {}
    for name, power in powers.items():
        others = _scaled(_powers(margins, power), labels, weights)
        closer = np.log(as_factors) - np.log(np.maximum(others, _LEAST))
        gain = weights * (labels * closer - as_factors + others)
        found[name] = float(gain.sum() / (np.sqrt((gain**2).sum()) or 1.0))
    return found


def _powers(margins: Any, power: float) -> Any:
    """Powers of the margins' exponentials, up to a factor by which the largest one is 1."""
    exponents = power * margins
    return np.exp(exponents - exponents.max())


def _scaled(expected: Any, labels: Any, weights: Any) -> Any:
    """Expectations in the same ratios, with the labels' sum."""
    return expected * ((weights * labels).sum() / (weights * expected).sum())


def _best_power(margins: Any, labels: Any, weights: Any) -> float:
    """The power of the margins' exponentials that makes the labels likeliest, by Newton's method."""
    wanted = (weights * labels * margins).sum() / (weights * labels).sum()
    power = 1.0
    for _ in range(_STEPS):
        shares = weights * _powers(margins, power)
        shares /= shares.sum()
        mean = (shares * margins).sum()
        variance = (shares * (margins - mean) ** 2).sum()
        power += float(np.clip((wanted - mean) / max(variance, 1e-12), -1, 1))
    return power
