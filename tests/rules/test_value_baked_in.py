"""ValueBakedIn, on numbers as they are saved; test_tensorflow_baked_values.py has the programs."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import ValueBakedIn
from smd_agent.rules.finding import Severity

NAN = float("nan")
COURSES = {
    # The value that the name has at each step, and what is said where the function was traced with 0.
    "rises": ([0.0, 0.1, 0.2], Severity.WARNING),
    "is assigned once": ([0.0, 0.0, 1.0, 1.0], Severity.NOTE),
    "comes back": ([0.0, 1.0, 0.0], Severity.NOTE),
    "stays": ([0.0, 0.0, 0.0], None),
    "is not known": ([0.0, NAN, NAN], None),
}


@pytest.mark.parametrize("name", COURSES)
def test_values_after_the_trace(written, name):
    values, expected = COURSES[name]
    run = written(usage="^usage/")
    for value in values:
        facts = {"usage/python_number/beta/traced": 0.0, "usage/python_number/beta/now": value}
        run.step(**{name: np.float64(number) for name, number in facts.items()})
    found = run.ended().findings(ValueBakedIn())
    assert [one.severity for one in found] == [expected] * (expected is not None)
    assert all(one.evidence["traced"] == 0.0 and "no effect" in one.cause for one in found)
