"""The first steps of a training, which are saved as far as that takes little time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from harness.memory_hook import make, saved, train

from smd_agent.core.budget import SHARE
from smd_agent.core.clock import NEVER
from smd_agent.core.early_steps import ALLOWANCE, EarlySteps
from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig

ALL = [*range(30), *range(30, 100, 5), *range(100, 500, 25)]


def zero():
    return 0.0


def early(spent_by_step, seconds_by_step=1e-3, budget=SHARE, waits=1):
    """Early steps of a training in which saving takes so long for each step that is saved, ``waits`` times its work."""
    at = SimpleNamespace(spent=0.0, now=0.0)
    steps = EarlySteps(lambda: at.spent, lambda: at.spent / waits, lambda: at.now, budget)
    found = []
    for step in range(600):
        if steps.takes(ModeKeys.TRAIN, step):
            found.append(step)
            at.spent += spent_by_step
        at.now += seconds_by_step
    return found, at


def test_all_are_saved_where_that_takes_little_time():
    assert early(1e-4)[0] == ALL


def test_where_a_step_takes_long_to_be_saved_they_are_few():
    found, at = early(0.1)
    assert found == [0, 1, 2, 3, 4]
    # The step that begins within the time may go beyond it.
    assert at.spent <= ALLOWANCE + 0.1


def test_long_steps_are_saved_as_far_as_that_is_a_small_part_of_them():
    found, at = early(0.1, seconds_by_step=2.0)
    assert at.spent <= 2 * SHARE * at.now + ALLOWANCE
    assert 15 <= len(found) < len(ALL)
    assert early(0.1, seconds_by_step=10.0)[0] == ALL


def test_who_waits_for_a_processor_saves_as_many():
    assert early(1 / 8, waits=2)[0] == early(1 / 16)[0] == [*range(8)]


def test_waits_are_not_for_nothing():
    assert early(1 / 4, waits=100)[0] == [*range(4)]


def test_a_smaller_budget_saves_fewer():
    assert len(early(0.01)[0]) > 2 * len(early(0.01, budget=SHARE / 10)[0]) > 2


def test_what_was_decided_of_a_step_stays_so():
    spent = [0.0]
    steps = EarlySteps(lambda: spent[0], zero, zero)
    assert steps.takes(ModeKeys.TRAIN, 0)
    assert steps.takes(ModeKeys.TRAIN, 1)
    spent[0] = 100.0
    assert steps.takes(ModeKeys.TRAIN, 1)
    assert not steps.takes(ModeKeys.TRAIN, 2)


@pytest.mark.parametrize("mode", [ModeKeys.EVAL, ModeKeys.PREDICT])
def test_there_are_none_but_in_training(mode):
    steps = EarlySteps(zero, zero, zero)
    assert not any(steps.takes(mode, step) for step in range(9))
    assert steps.next_due(mode, 1) == NEVER


def test_the_next_one_is_told_from_any_step_on():
    steps = EarlySteps(zero, zero, zero)
    for step in range(520):
        due = next((one for one in ALL if one >= step), NEVER)
        assert steps.next_due(ModeKeys.TRAIN, step) == due


def test_another_training_has_early_steps_of_its_own():
    steps = EarlySteps(zero, zero, zero)
    steps.begin_anew({ModeKeys.TRAIN: 220})
    found = [step for step in range(900) if steps.takes(ModeKeys.TRAIN, step)]
    assert found == [220 + step for step in ALL]
    assert steps.next_due(ModeKeys.TRAIN, 0) == steps.next_due(ModeKeys.TRAIN, 220) == 220
    assert steps.next_due(ModeKeys.TRAIN, 251) == 255
    assert steps.takes(ModeKeys.GLOBAL, 0)


def test_the_first_three_trainings_have_time_of_their_own():
    at = SimpleNamespace(spent=0.0)
    steps = EarlySteps(lambda: at.spent, lambda: at.spent, zero)
    found = []
    for begin in (0, 100, 200, 300):
        steps.begin_anew({ModeKeys.TRAIN: begin})
        for step in range(begin, begin + 30):
            if steps.takes(ModeKeys.TRAIN, step):
                found.append(begin)
                at.spent += 1 / 16
    assert [found.count(begin) for begin in (0, 100, 200, 300)] == [8, 4, 4, 0]


def test_the_next_step_is_asked_for_when_another_training_begins():
    hook = make(save_config=SaveConfig(save_interval=1000))
    hook.save_early(EarlySteps(zero, zero, zero))
    train(hook, 600, ModeKeys.TRAIN)
    hook.training_begins_anew()
    train(hook, 10, ModeKeys.TRAIN)
    assert [step for step, _, _ in saved(hook)] == [*ALL, *range(600, 610)]


def first_steps(include_workers="one", size=1, **steps):
    """The steps that a hook saves of its first ten, early ones among them."""
    hook = make(save_config=SaveConfig(save_interval=4, **steps), include_workers=include_workers)
    hook.recorder.output._rank_and_size = lambda: (0, size)
    hook.save_early(EarlySteps(zero, zero, zero))
    train(hook, 10, ModeKeys.TRAIN)
    return [step for step, _, _ in saved(hook)]


def test_a_hook_saves_them_beside_those_of_its_rule():
    assert first_steps() == [*range(10)]


def test_none_is_saved_outside_of_the_range_of_the_rule():
    assert first_steps(start_step=3, end_step=6) == [3, 4, 5]
    assert first_steps(start_step=3, end_step=6, save_steps=[8]) == [3, 4, 5, 8]
    assert first_steps(end_step=0) == []


def test_workers_that_write_a_run_together_save_the_same_steps():
    assert first_steps(include_workers="all", size=2) == [0, 4, 8]
    assert first_steps(include_workers="one", size=2) == [*range(10)]
