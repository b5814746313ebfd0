"""The budget of what is computed in steps that are not saved: the first steps, and how often the others."""

from __future__ import annotations

from itertools import pairwise

import pytest

from smd_agent.core.budget import ALLOWANCE, FIRST, FIRST_ROWS, Allowance, Budget, Rests


def run(budget, steps, step_seconds, cost):
    """Steps in which it was taken, which takes so long beside the step itself."""
    taken = []
    for step in range(steps):
        takes = budget.takes()
        if takes:
            taken.append(step)
        budget.step_took(step_seconds)
        if takes:
            budget.took(cost)
    return taken


def test_what_costs_little_is_taken_in_every_step():
    assert run(Budget(0.01), 500, 0.02, 0.0001) == [*range(500)]


@pytest.mark.parametrize("seconds", [0.0002, 0.003, 0.02, 0.5])
@pytest.mark.parametrize("cost", [0.00003, 0.0005, 0.05])
def test_the_share_is_kept_beside_the_first_steps(seconds, cost):
    taken = run(Budget(0.01), 20_000, seconds, cost)
    later = [step for step in taken if step >= FIRST]
    assert len(later) * cost <= 1.1 * 0.01 * 20_000 * seconds + cost


def test_the_first_steps_are_taken_as_long_as_they_take_little_in_all():
    assert run(Budget(0.01), FIRST, 0.001, 0.01) == [*range(FIRST)]
    assert len(run(Budget(0.01), FIRST, 0.001, 0.1)) <= ALLOWANCE / 0.1 + 1


def test_it_is_taken_at_even_distances_which_change_seldom():
    taken = run(Budget(0.01), 10_000, 0.001, 0.0001)
    later = [step for step in taken if step >= FIRST]
    distances = {b - a for a, b in pairwise(later)}
    assert distances == {16, 32}


def test_it_becomes_more_frequent_where_steps_become_longer():
    budget = Budget(0.01)
    run(budget, 2000, 0.0005, 0.0001)
    assert budget.every >= 16
    run(budget, 2000, 0.5, 0.0001)
    assert budget.every == 1


def rows(seconds, cost, steps=20_000):
    """How many of the steps have a row, which takes so long beside the step itself."""
    rests, taken, step, others = Rests(0.005), 0, 0, 0.0
    while step < steps:
        taken += 1
        rest = rests.after(seconds + cost, others)
        others = seconds if rest else 0.0
        step += 1 + rest
    return taken


@pytest.mark.parametrize("seconds", [0.0001, 0.0003, 0.003, 0.02, 0.5])
@pytest.mark.parametrize("cost", [0.00002, 0.00006, 0.0002])
def test_rows_take_a_small_share_of_short_steps(seconds, cost):
    assert (rows(seconds, cost) - FIRST_ROWS - FIRST) * cost <= 1.1 * 0.01 * 20_000 * seconds


@pytest.mark.parametrize("pause", [0.01, 0.1, 10.0])
def test_a_pause_of_the_program_amid_steps_without_a_row_does_not_end_rests(pause):
    rests = Rests(0.005)
    while not rests.after(0.0026, 0.0):
        pass
    assert all(rests.after(0.0026, pause) for _ in range(20))
    assert all(rests.after(0.0026, 0.0025) for _ in range(100))


def test_each_step_that_is_not_short_has_a_row():
    assert rows(0.02, 0.00006, 3000) == 3000
    assert rows(0.1, 0.0002, 3000) == 3000


@pytest.mark.parametrize("own, every", [(0.0, 1), (0.0003, 4), (10.0, 8)])
def test_what_rows_take_counts_where_steps_vary_by_more(own, every):
    rests = Rests(0.005)
    taken = [rests.after(0.016, 0.0 if step < FIRST_ROWS else 0.017, own) for step in range(FIRST_ROWS + 100)]
    assert taken[-1] == every - 1


def test_the_first_thousand_steps_have_a_row_each():
    assert rows(0.0001, 0.0002, FIRST_ROWS) == FIRST_ROWS


def test_an_allowance_is_some_seconds_or_a_part_of_the_time():
    at = {"spent": 5.0, "now": 100.0}
    allowance = Allowance(1.0, 0.02, lambda: at["spent"], lambda: at["now"])
    assert allowance.is_left()
    assert allowance.is_left(0.9)
    assert not allowance.is_left(1.0)
    assert not allowance.is_left(0.6, part=0.5)
    at["spent"] += 1.5
    assert not allowance.is_left()
    at["now"] += 100.0
    assert allowance.is_left(0.4)
    assert not allowance.is_left(0.6)
