"""Kinds of trainings on real PyTorch and Gluon: their steps are their authors' iterations, as the page says."""

from __future__ import annotations

import importlib.util

import pytest
from harness.step_kinds import NONE, WORDS, Kinds, cell, steps_of, table

if importlib.util.find_spec("torch") is not None:
    COLUMN, SCRIPT, WARM = "PyTorch", "pytorch/step_kinds.py", ("torch", "torch._dynamo")
    MISSING = []
elif importlib.util.find_spec("mxnet") is not None:
    COLUMN, SCRIPT, WARM = "Gluon", "mxnet/step_kinds.py", ("mxnet",)
    # No optimizer of MXNet calls a closure, and a Block cannot be called with other parameters.
    MISSING = ["lbfgs", "maml"]
else:
    pytest.skip("there is neither torch nor mxnet", allow_module_level=True)

# Where other updates than its author's end a step.
OTHERWISE = ["gan_with_a_generator_now_and_then"]
# The author counts no evaluation where the trained teacher is called.
MORE_EVALUATIONS = ["distillation_of_a_teacher_trained_before"]
SECOND = "resume_in_a_second_process"
KINDS = [kind for kind in WORDS if kind not in MISSING]
AS_COUNTED = [kind for kind in KINDS if kind not in OTHERWISE]


@pytest.fixture(scope="module")
def kinds(module_runner):
    return Kinds(module_runner("kinds"), SCRIPT)


@pytest.fixture(scope="module")
def own_run(kinds):
    """Return the trial of a kind in a process of its own, every step of it saved; each is run once."""
    found = {}

    def trial(kind):
        if kind not in found:
            found[kind] = kinds.run(kind, name=kind, weights=True, uneven=kind in OTHERWISE)
        return found[kind]

    return trial


@pytest.mark.parametrize("kind", AS_COUNTED)
def test_the_steps_of_a_kind_are_its_authors_iterations(kinds, own_run, kind):
    trial = own_run(kind)
    (train, evaluation), (iterations, evaluations) = steps_of(trial), kinds.counts[kind]
    assert train == iterations
    assert (evaluation != evaluations) == (kind in MORE_EVALUATIONS)
    assert kinds.check(trial, kind) == iterations > 20


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_counted_otherwise_is_known_and_said(kinds, own_run, kind):
    with pytest.raises(AssertionError):
        kinds.check(own_run(kind), kind)


@pytest.mark.parametrize("interval", [2, 3, 7, 100])
def test_at_every_interval_each_saved_step_has_its_losses_and_its_gradients(kinds, interval):
    trial = kinds.run(*AS_COUNTED, name=f"every_{interval}", interval=interval)
    first = checked = 0
    for kind in AS_COUNTED:
        checked += kinds.check(trial, kind, interval, first)
        first += kinds.counts[kind][0]
    assert checked == steps_of(trial)[0] == len(range(0, first, interval))


def test_a_training_that_goes_on_in_a_second_process_has_a_run_beside_the_first(kinds, own_run):
    iterations, _ = kinds.counts[SECOND]
    first = own_run(SECOND)
    more = Kinds(kinds.runner, SCRIPT, SECOND)
    assert more.counts[SECOND] == (2 * iterations, 0)
    second = more.run(SECOND, name=SECOND, weights=True)
    assert second.path == f"{first.path}-2"
    assert more.check(second, SECOND, first=-iterations) == iterations


def test_the_page_has_what_was_counted(kinds, own_run):
    shown = {words: row[COLUMN] for words, row in table().items() if row[COLUMN] != NONE}
    assert shown == {WORDS[kind]: cell(steps_of(own_run(kind)), kinds.counts[kind]) for kind in KINDS}


def test_the_page_has_every_kind(kinds):
    assert list(table()) == list(WORDS.values())
    assert [*kinds.counts] == KINDS
