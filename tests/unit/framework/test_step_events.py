"""Probes get the events that they name, and fail alone."""

from __future__ import annotations

import pytest

from smd_agent import guard
from smd_agent.core import failure_domains
from smd_agent.core.failure_domains import DIGESTS, MODES
from smd_agent.framework.step_events import AfterUpdate, BeforeUpdate, ModelCall, Probe, Probes, StepEnd, on

CALL = ModelCall("Net", None, ())


@pytest.fixture(autouse=True)
def no_failures():
    guard.lines.said.clear()
    failure_domains.failures.begin_anew()
    yield
    failure_domains.failures.begin_anew()


class Digests(Probe, domain=DIGESTS, doing="looking at inputs"):
    def __init__(self):
        self.seen = []

    @on(ModelCall)
    def call(self, call):
        self.seen.append(call)
        raise ValueError("no digest")

    @on(BeforeUpdate, AfterUpdate)
    def update(self, update):
        self.seen.append(update)


class Modes(Probe, domain=MODES, doing="looking at modes"):
    def __init__(self, wanted=True):
        self.wanted = wanted
        self.seen = []

    @on(ModelCall)
    def call(self, call):
        self.seen.append(call)


class MoreModes(Modes):
    @on(StepEnd)
    def close(self, _):
        self.seen.append("end")


def test_each_probe_gets_the_events_that_it_names():
    digests, modes = Digests(), MoreModes()
    probes = Probes([digests, modes])
    for event in (BeforeUpdate(1), AfterUpdate(2), StepEnd()):
        probes.emit(event)
    assert digests.seen == [BeforeUpdate(1), AfterUpdate(2)]
    assert modes.seen == ["end"]


def test_a_probe_that_fails_fails_alone_and_is_switched_off_in_the_end(capsys):
    digests, modes = Digests(), Modes()
    for _ in range(5):
        failure_domains.failures.saved_steps += 1
        Probes([digests, modes]).emit(CALL)
    assert digests.seen == [CALL] * failure_domains.IN_A_ROW
    assert modes.seen == [CALL] * 5
    assert DIGESTS.off
    assert not MODES.off
    assert (
        "input digests are not saved any more: looking at inputs failed (ValueError: no digest)"
        in capsys.readouterr().err
    )


class Closed(Probe, domain=MODES, doing="looking at modes"):
    @on(StepEnd, doing="saving modes")
    def close(self, _):
        raise ValueError("no modes")


def test_a_method_of_a_probe_may_have_words_of_its_own(capsys):
    Probes([Closed()]).emit(StepEnd())
    assert "may be missing: saving modes failed (ValueError: no modes)" in capsys.readouterr().err


def test_a_probe_that_no_step_wants_gets_nothing():
    modes = Modes(wanted=False)
    Probes([modes]).emit(CALL)
    assert modes.seen == []
