"""What a loss is given, where there is nothing in it, or too much."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.framework import loss_facts
from smd_agent.framework.keras.loss_inputs import is_mean


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_of_nothing_nothing_is_known(shape):
    nothing = np.zeros(shape, np.float32)
    assert loss_facts.classes_of_one_hot(nothing) is None
    assert loss_facts.counted(nothing) is None
    assert loss_facts.ends(nothing) == {}
    assert loss_facts.rows(nothing) == {"classes": shape[-1]}


@pytest.mark.parametrize("values", [np.float32([3e38, 3e38]), np.float64([1e300]), np.float32([np.inf, -np.inf])])
def test_what_overflows_is_no_warning(values):
    found = loss_facts.rows(values, logarithms=True)
    assert not np.isfinite(found["row_sum_error"])
    assert found["classes"] == values.size


def test_a_reduction_of_the_programs_own_is_not_compared():
    class Reduction:
        def __eq__(self, other):
            raise TypeError("not for you")

    class Loss:
        def __init__(self, reduction):
            self.reduction = reduction

    assert is_mean(Loss("sum_over_batch_size"))
    assert not is_mean(Loss("sum"))
    assert not is_mean(Loss(Reduction()))
