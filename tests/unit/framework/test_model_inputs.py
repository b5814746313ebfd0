"""What is looked at of a model's input, of any size."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.framework.model_inputs import numbers_of, sample


@pytest.mark.parametrize("size", [1, 16_383, 16_384, 16_385, 39_200, 65_535, 65_536, 65_537, 1_000_003])
def test_of_an_input_that_is_no_table_runs_all_over_it_are_looked_at(size):
    values = np.arange(size)
    part = sample(values).elements
    assert part.size == min(size, 16_384)
    assert part.reshape(-1)[0] == 0
    if size > 16_384:
        assert part.shape == (64, 256)
        assert (np.diff(part) == 1).all()
        assert (np.diff(part[:, 0]) == size // 64).all()


@pytest.mark.parametrize(
    "shape", [(50, 28, 28), (50, 3, 20, 20), (30, 100, 10), (1, 3, 150, 150), (20, 3001), (1, 20_001)]
)
def test_inputs_whose_size_is_no_multiple_of_the_number_of_runs(shape):
    assert sample(np.zeros(shape, np.float32)).elements.size == 16_384


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_numbers_whose_squares_leave_float32(size):
    table = np.float32([[1, 2], [3, -2]]) * np.float32(size)
    found = {name: float(number) / size for name, number in numbers_of(sample(table)).items()}
    assert found["std"] == pytest.approx(3.5**0.5, rel=1e-5)
    assert found["largest_scale"] == pytest.approx(5**0.5, rel=1e-5)
    assert found["smallest_scale"] == pytest.approx(2, rel=1e-5)
