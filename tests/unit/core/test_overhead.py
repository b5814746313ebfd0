"""The time that is the agent's: counted in saved steps and preparations, and no clock is read elsewhere."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from smd_agent.core import overhead as module
from smd_agent.core.overhead import Overhead


class Clock:
    """A clock that goes on by a second with each look."""

    def __init__(self):
        self.looks = 0

    def perf_counter(self):
        self.looks += 1
        return float(self.looks)

    def thread_time(self):
        return self.looks / 4


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def unknown():
    """No age of the process is known."""


def share(own):
    spent, whole = own.took(unknown)
    return spent / whole


def test_nothing_is_known_before_anything_was_prepared():
    assert Overhead().took(unknown) is None


def test_no_clock_is_read_where_no_step_is_saved(clock):
    own = Overhead()
    own.counts = False
    assert own.counted(lambda: 7)() == 7
    assert clock.looks == 0


def test_a_function_in_a_saved_step_counts_once_however_many_it_calls(clock):
    own = Overhead()
    own.asked()
    inner = own.counted(time.monotonic)
    own.counted(lambda: (inner(), inner()))()
    # Begun at 1; from 2 to 3; asked at 4.
    assert share(own) == pytest.approx(1 / 3)


def test_a_step_that_opens_inside_of_a_function_counts_from_there_on(clock):
    own = Overhead()
    own.counts = False

    def opens():
        own.asked()
        own.counts = True

    own.counted(opens)()
    # From 1 to 2; asked at 3.
    assert share(own) == pytest.approx(1 / 2)


def test_the_time_of_the_processor_is_told_beside_it(clock):
    own = Overhead()
    own.asked()
    own.counted(lambda: 7)()
    assert (own.seconds, own.processor_seconds) == (1.0, 0.25)


def test_other_threads_are_not_the_one_that_trains(clock):
    own = Overhead()
    own.asked()
    thread = threading.Thread(target=own.counted(time.monotonic))
    thread.start()
    thread.join()
    assert clock.looks == 1


def test_a_function_that_fails_counts_too(clock):
    own = Overhead()
    own.asked()
    with pytest.raises(ZeroDivisionError):
        own.counted(lambda: 1 / 0)()
    with own.spending():
        pass
    # From 2 to 3 and from 4 to 5; asked at 6.
    assert share(own) == pytest.approx(2 / 5)


def test_a_child_begins_anew(clock):
    own = Overhead()
    with own.spending():
        pass
    own.begin_anew()
    assert own.took(unknown) is None


def test_the_share_is_of_all_the_time_that_the_process_has_lived(clock):
    own = Overhead()
    with own.spending():
        pass
    # From 1 to 2, of the 50 s in which the program has imported, loaded and trained.
    assert own.took(lambda: 50.0) == (1.0, 50.0)


def test_a_process_has_an_age():
    code = "import sys, time; from smd_agent.process_age import process_age; time.sleep(0.3); print(process_age())"
    begun = time.monotonic()
    age = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 0.28 <= age <= time.monotonic() - begun + 0.02
