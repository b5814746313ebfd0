"""Failure domains: each fails alone, is said once, noted, and switched off where it fails again and again."""

from __future__ import annotations

import pytest

from smd_agent import guard, session
from smd_agent.core.failure_domains import AT_MOST, STEPS, Domain, failures, tensor_failed
from smd_agent.core.failure_record import Failure


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing has failed yet, and no domain of the test's stays."""
    monkeypatch.setattr(guard.lines, "said", set())
    monkeypatch.setattr(failures, "saved_steps", 0)
    monkeypatch.setattr(failures, "domains", [*failures.domains])
    monkeypatch.setattr(failures, "where", lambda: (failures.saved_steps - 1, "TRAIN"))
    session.forget()
    yield
    session.forget()


def saved_step():
    failures.saved_steps += 1


def failing(times, error=None):
    error = ValueError("no") if error is None else error
    left = [times]

    def fail(value="x"):
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return value

    return fail


def test_one_failure_costs_one_call_and_is_said_and_noted(capsys):
    cats, dogs = Domain("cats"), Domain("dogs")
    look = cats.fence("counting cats")(failing(1))
    saved_step()
    assert [look(), look(), dogs.run("counting dogs", failing(0))] == [None, "x", "x"]
    line = "smd_agent: cats of step 0 may be missing: counting cats failed (ValueError: no); all else goes on\n"
    assert capsys.readouterr().err == line
    assert failures.noted == [Failure("cats", "counting cats", "ValueError: no", 0, 0, "TRAIN")]


def test_a_domain_that_fails_in_three_saved_steps_in_a_row_is_switched_off_alone(capsys):
    cats, dogs = Domain("cats"), Domain("dogs")
    look = cats.fence("counting cats")(failing(99))
    for _ in range(5):
        saved_step()
        look()
        look()
        assert dogs.run("counting dogs", failing(0)) == "x"
    assert (cats.off, dogs.off, STEPS.off) == (True, False, False)
    assert "cats are not saved any more: counting cats failed (ValueError: no) again" in capsys.readouterr().err
    assert [(one.times, one.step, one.last, one.off) for one in failures.noted] == [(5, 0, 2, True)]


def test_a_step_without_a_failure_starts_the_count_anew():
    cats = Domain("cats")
    for step in range(9):
        saved_step()
        if step % 3 != 2:
            cats.run("counting cats", failing(1))
    assert not cats.off


def test_what_fails_all_the_time_between_saved_steps_is_switched_off_too():
    cats = Domain("cats")
    look = cats.fence("counting cats")(failing(999))
    for _ in range(AT_MOST):
        look()
    assert cats.off


def test_what_tells_where_a_step_begins_is_tried_twice(capsys):
    cats = Domain("cats")
    assert cats.fence("counting cats", again=True)(failing(1))() == "x"
    assert len(capsys.readouterr().err.splitlines()) == len(failures.noted) == 1
    assert cats.fence("counting cats", again=True)(failing(2))() is None
    assert [one.times for one in failures.noted] == [2]


def test_what_follows_a_failure_is_called_with_the_same_arguments():
    seen = []
    Domain("cats").fence("counting cats", then=seen.append)(failing(1))("tom")
    assert seen == ["tom"]


def test_what_is_undone_is_undone_whatever_is_off():
    cats = Domain("cats")
    cats.off = True
    assert cats.run("counting cats", failing(0)) is None
    assert cats.always("counting cats", failing(0)) == "x"
    assert cats.always("counting cats", failing(1)) is None
    assert cats.always("counting cats", failing(1), again=True) == "x"


def test_a_tensor_that_cannot_be_saved_is_named(capsys):
    saved_step()
    tensor_failed("gradient/fc", ValueError("no"))
    line = "smd_agent: gradient/fc is missing in step 0: saving it failed (ValueError: no); all else goes on\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_is_no_exception_passes(error):
    with pytest.raises(error):
        Domain("cats").fence("counting cats")(failing(1, error()))()


def test_under_strict_a_failure_is_said_and_raised(monkeypatch, capsys):
    monkeypatch.setattr(guard, "strict", True)
    with pytest.raises(ValueError, match="no"):
        Domain("cats").fence("counting cats", again=True)(failing(1))()
    with pytest.raises(ValueError, match="no"):
        Domain("dogs").run("counting dogs", failing(1))
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize("doing, ends", [("opening a step", True), ("looking at the training", False)])
def test_a_folder_that_cannot_be_made_ends_the_capture_at_once(doing, ends, capsys):
    STEPS.failed(doing, OSError("read-only"))
    assert (STEPS.off, session.is_off()) == (ends, ends)
    assert ("capture is off" in capsys.readouterr().err) is ends
