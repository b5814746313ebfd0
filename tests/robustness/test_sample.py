"""A sample of each part is survived; and what is not survived is noticed."""

from __future__ import annotations

import sys

import pytest

from robustness import broken, page
from robustness.limits import run
from robustness.parts import PARTS

MANY = 20


@pytest.mark.parametrize("name", [name for name in PARTS if PARTS[name].sample])
def test_a_sample_of_each_part_is_survived(name):
    part = PARTS[name]
    result = run(part, range(part.sample))
    assert result.failures == []
    assert sum(result.ends.values()) == part.sample
    # Harm that is always refused, or never noticed, would try nothing; of a few cases that tells nothing.
    assert len(result.ends) > 1 or part.sample < MANY


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_what_is_not_survived_is_noticed():
    cases = range(16)
    result = run(broken.PART, cases)
    expected = {
        "hangs": "takes longer than 1 s",
        "dies": "the process ended with 3",
        "raises": "ValueError in broken.py",
        "fills the memory": "MemoryError in broken.py",
    }
    kinds = [broken.ENDS[broken.PART.case(case).randrange(len(broken.ENDS))] for case in cases]
    assert set(kinds) == set(broken.ENDS)
    failures = dict(result.failures)
    assert failures.keys() == {case for case in cases if kinds[case] != "ends well"}
    assert all(what.startswith(expected[kinds[case]]) for case, what in failures.items())
    assert result.ends == {"well": kinds.count("ends well")}
    said = page.summary(broken.PART, result)
    assert f"{len(failures)} not survived" in said
    assert "ValueError in broken.py" in said
