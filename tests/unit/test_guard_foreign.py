"""What a program's signal handlers and trace functions raise inside of our code is the program's."""

import functools
import signal
import sys
import threading

import pytest

from smd_agent import guard
from smd_agent.core.failure_domains import Domain, failures
from smd_agent.guard import is_foreign


class Timeout(Exception):
    """The program's own."""


WAYS = {
    "fence": lambda function, then: guard.fence("saving")(function),
    "domain": lambda function, then: Domain("cats").fence("saving", then=then)(function),
    "domain, tried twice": lambda function, then: Domain("cats").fence("saving", then=then, again=True)(function),
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing has been said yet, and no handler stays."""
    monkeypatch.setattr(failures, "domains", [*failures.domains])
    monkeypatch.setattr(guard.lines, "said", set())
    monkeypatch.setattr(guard, "strict", False)
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def function(signum, frame):
    raise Timeout


def of_any_arguments(*_):
    raise Timeout


def below(signum, frame):
    of_any_arguments()


def overwriting(signum, frame):
    frame = None  # noqa: F841
    raise Timeout


def leaving(signum, frame):
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    raise Timeout


def with_more(more, signum, frame):
    raise Timeout


class Watchdog:
    def __call__(self, signum, frame):
        raise Timeout

    def method(self, signum, frame):
        raise Timeout


HANDLERS = {
    "function": function,
    "any arguments": of_any_arguments,
    "raised below": below,
    "overwrites its arguments": overwriting,
    "is no handler any more": leaving,
    "partial": functools.partial(with_more, 1),
    "method": Watchdog().method,
    "callable object": Watchdog(),
    "lambda": lambda *_: (_ for _ in ()).throw(Timeout),
}


def interrupted():
    """Something of ours, in the middle of which a signal comes."""
    signal.raise_signal(signal.SIGUSR1)
    return "went on"


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("way", ["fence", "domain", "domain, tried twice"])
def test_what_a_signal_handler_raises_passes_a_fence(kind, strict, way, monkeypatch, capsys):
    monkeypatch.setattr(guard, "strict", strict)
    signal.signal(signal.SIGUSR1, HANDLERS[kind])
    then = []
    with pytest.raises(Timeout):
        WAYS[way](interrupted, lambda: then.append(1))()
    assert not then
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", HANDLERS)
def test_what_a_signal_handler_raises_passes_an_attempt(kind):
    signal.signal(signal.SIGUSR1, HANDLERS[kind])
    with pytest.raises(Timeout):
        guard.attempt(interrupted)


def test_what_a_signal_handler_raises_passes_where_a_line_is_said(monkeypatch):
    class Stream:
        def fileno(self):
            signal.raise_signal(signal.SIGUSR1)

        def write(self, text):
            pass

    signal.signal(signal.SIGUSR1, function)
    monkeypatch.setattr(guard.lines, "unsaid", [])
    monkeypatch.setattr(sys, "stderr", Stream())
    with pytest.raises(Timeout):
        guard.say("something")


def test_what_a_signal_handler_raises_passes_while_something_is_undone(capsys):
    signal.signal(signal.SIGUSR1, function)
    with pytest.raises(Timeout):
        Domain("cats").fence("saving", then=interrupted)(lambda: 1 / 0)()
    assert "saving failed (ZeroDivisionError" in capsys.readouterr().err


def test_what_a_signal_handler_raises_passes_while_we_wait_for_a_thread():
    main, waiting, go_on = threading.get_ident(), threading.Event(), threading.Event()

    def waits():
        waiting.set()
        # A signal just before a wait is seen after it.
        for _ in range(200):
            go_on.wait(0.1)

    def interrupt():
        waiting.wait()
        signal.pthread_kill(main, signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, function)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Timeout):
        guard.fence("waiting")(waits)()
    thread.join()


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile])
def test_what_a_function_that_traces_raises_passes_a_fence(setter):
    def tracing(frame, event, argument):
        if frame.f_code is interrupted.__code__:
            raise Timeout

    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    before = sys.gettrace(), sys.getprofile()
    setter(tracing)
    try:
        with pytest.raises(Timeout):
            guard.fence("saving")(interrupted)()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def caught(action):
    try:
        action()
    except Exception as error:
        return error
    return None


def test_a_failure_of_ours_is_ours_where_there_are_handlers():
    signal.signal(signal.SIGUSR1, function)
    assert not is_foreign(caught(lambda: int(None)))
    assert not is_foreign(caught(lambda: [].pop()))
    assert not is_foreign(Timeout())


def test_a_failure_of_ours_below_a_handler_is_ours(capsys):
    """Such as where a handler trains on to the next checkpoint."""
    kept = []
    signal.signal(signal.SIGUSR1, lambda *_: kept.append(guard.fence("saving")(lambda: 1 / 0)()))
    assert interrupted() == "went on"
    assert kept == [None]
    assert "saving failed (ZeroDivisionError" in capsys.readouterr().err


def test_a_function_that_is_handed_its_callers_frame_is_no_handler():
    def walks(number, frame):
        raise LookupError(number)

    def asks():
        walks("first", sys._getframe())

    assert not is_foreign(caught(asks))


def test_in_a_thread_a_failure_is_ours():
    signal.signal(signal.SIGUSR1, function)
    found = []
    thread = threading.Thread(target=lambda: found.append(guard.attempt(lambda: 1 / 0)))
    thread.start()
    thread.join()
    assert isinstance(found[0], ZeroDivisionError)
