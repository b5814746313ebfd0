"""Bounds of rounding: how far two runs of the same mathematics may be apart by it alone.

Each layer rounds what it stores, by at most the unit roundoff u of its type, and adds up n products in float32 or
wider, which rounds by about √n u (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019).
Errors of layers and of steps are taken to be independent, so that those of L layers and of t updates grow with √L and
√t:

    bound = 4 (u √L + u' √n) √(t + 1)        u' = min(u, 2**-24)

It is a bound on what is usual, of differences relative to the size of a tensor, and no proof. Gradients have
bound + 2 √bound: units of a ReLU that are about 0 are on in one run and off in the other, a share of them as large as
the error, and the norm of what they change is its root. Trainings amplify small differences: what leaves the bounds
slowly is noise that has grown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

UNITS = {
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
    "float32": 2.0**-24,
    "complex64": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
"""The unit roundoff of each type: half of the distance from 1 to the next number."""

PROFILES = {
    "auto": 0.0,
    "float64": UNITS["float64"],
    "float32": UNITS["float32"],
    "device": 2.0**-20,
    "tf32": 2.0**-11,
    "float16": UNITS["float16"],
    "bfloat16": UNITS["bfloat16"],
}
"""Unit roundoffs to ask for by name: ``auto`` is that of the coarsest type that the runs have, ``device`` 16 times that
of float32, for other kernels of another device or release.
"""

_SAFETY = 4.0
_ACCUMULATED = 2.0**-24


@dataclass(frozen=True)
class Noise:
    """The bounds of float noise for two runs.

    Attributes:
        unit: unit roundoff of what is stored.
        longest: elements that are added up at most, as far as shapes tell.
        layers: that compute one after the other.
    """

    unit: float
    longest: int = 1
    layers: int = 1

    def bound(self, updates: int) -> float:
        """Return how far tensors may be apart, relative to their size, after so many updates."""
        added = min(self.unit, _ACCUMULATED)
        once = self.unit * math.sqrt(max(self.layers, 1)) + added * math.sqrt(max(self.longest, 1))
        return _SAFETY * once * math.sqrt(max(updates, 0) + 1)

    def gradient_bound(self, updates: int) -> float:
        """Return the same for gradients, and what is made of them."""
        bound = self.bound(updates)
        return bound + 2 * math.sqrt(bound)


def coarsest(dtypes: set[str]) -> str | None:
    """Return the type of the largest unit roundoff among some; None if none of them is one of floats."""
    return max(dtypes & UNITS.keys(), key=lambda name: (UNITS[name], name), default=None)
