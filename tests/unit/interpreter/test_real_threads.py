"""Threads of the system beside others that a library puts in their place."""

from __future__ import annotations

import _thread
import os
import threading
import time

import pytest

from smd_agent.interpreter.real_threads import RealThread, allocate_lock, are_replaced


def test_threads_are_as_they_were_until_somebody_replaces_them(monkeypatch):
    assert not are_replaced()
    monkeypatch.setattr(_thread, "start_new_thread", lambda function, args: function(*args))
    monkeypatch.setattr(_thread, "allocate_lock", None)
    assert are_replaced()
    seen = []
    thread = RealThread(lambda: seen.append(threading.get_ident()), "other")
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert seen != [threading.get_ident()]
    assert len(seen) == 1


def test_it_is_waited_for_so_long_and_no_longer():
    goes_on = allocate_lock()
    goes_on.acquire()
    thread = RealThread(goes_on.acquire, "waiting")
    thread.start()
    since = time.monotonic()
    thread.join(0.05)
    assert 0.04 < time.monotonic() - since < 5
    assert thread.is_alive()
    goes_on.release()
    thread.join()
    assert not thread.is_alive()


def test_one_that_fails_has_ended(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)
    thread = RealThread(lambda: 1 // 0, "failing")
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_one_of_a_parent_process_is_not_at_work():
    goes_on = allocate_lock()
    goes_on.acquire()
    thread = RealThread(goes_on.acquire, "waiting")
    thread.start()
    child = os.fork()
    if child == 0:
        os._exit(thread.is_alive())
    assert os.waitpid(child, 0)[1] == 0
    assert thread.is_alive()
    goes_on.release()
    thread.join()
