"""Kinds of trainings on real Gluon: their steps are the iterations that the author counts, as the page says."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.step_kinds import NONE, WORDS, Kinds, cell, steps_of, table

WARM = ("mxnet",)
COLUMN = "Gluon"
SECOND = "resume_in_a_second_process"
# What is counted otherwise than the author does, and why.
OTHERWISE = {
    "gan_with_a_generator_now_and_then",
    "distillation_of_a_teacher_trained_before",
}
# A Block cannot be called with other parameters, and no optimizer of MXNet calls a closure.
MISSING = {"lbfgs", "maml"}
AS_COUNTED = [kind for kind in WORDS if kind not in MISSING and kind not in OTHERWISE]


@pytest.fixture(scope="module")
def kinds(module_runner):
    return Kinds(module_runner("kinds"), "mxnet/step_kinds.py")


@pytest.fixture(scope="module")
def own_run(kinds):
    """Return the trial of a kind in a process of its own, every step of it saved; each is run once."""
    found = {}

    def trial(kind):
        if kind not in found:
            found[kind], _ = kinds.run(kind, name=kind, weights=True)
        return found[kind]

    return trial


@pytest.mark.parametrize("kind", AS_COUNTED)
def test_the_steps_of_a_kind_are_its_authors_iterations(kinds, own_run, kind):
    trial = own_run(kind)
    assert steps_of(trial) == kinds.counts[kind]
    assert kinds.check(trial, kind) == kinds.counts[kind][0] > 20


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_counted_otherwise_is_known(kinds, own_run, kind):
    assert steps_of(own_run(kind)) != kinds.counts[kind], "as its author counts: take it out of OTHERWISE"


@pytest.mark.parametrize("interval", [2, 3, 7, 100])
def test_at_every_interval_each_saved_step_has_its_losses_and_its_gradients(kinds, interval):
    trial, _ = kinds.run(*AS_COUNTED, name=f"every_{interval}", interval=interval)
    first = checked = 0
    for kind in AS_COUNTED:
        checked += kinds.check(trial, kind, interval, first)
        first += kinds.counts[kind][0]
    assert checked == len(trial.steps(mode=trial.modes()[0])) == -(-first // interval)


@pytest.mark.parametrize("kind", [kind for kind in WORDS if kind not in MISSING])
def test_the_page_has_what_was_counted(kinds, own_run, kind):
    assert table()[WORDS[kind]][COLUMN] == cell(steps_of(own_run(kind)), kinds.counts[kind])


def test_the_page_has_every_kind_and_a_dash_for_one_that_there_is_not(kinds):
    assert list(table()) == list(WORDS.values())
    assert {kind for kind in WORDS if table()[WORDS[kind]][COLUMN].startswith(NONE)} == MISSING
    assert {*kinds.counts} == {*WORDS} - MISSING
