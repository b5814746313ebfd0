"""The verdict on runs that an observer has written down."""

from __future__ import annotations

import random

import numpy as np
import pytest

from smd_agent.framework import observer as observing
from smd_agent.framework.observer import MAIN, STEPS, Observer
from smd_agent.verify.verdict import Outcome, Run, judge


class Play:
    """A training of three steps that is observed; what a test changes of it is given to ``run``."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def run(self, change=None, steps=3, seed=True, code=0, stdout=b"", name=MAIN, end=True):
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        observer = Observer(str(folder / name), 0)
        observer.open()
        random.seed(1 if seed else None)
        np.random.seed(1)
        weights = np.zeros((2, 3), np.float32)
        for step in range(steps):
            loss = np.float32(np.random.rand())
            weights = weights + np.float32(step)
            if change is not None:
                weights, loss = change(step, weights, loss)
            observer.loss("loss", observer.array(loss))
            now = observer.array(weights)
            observer.updated(self, lambda _, now=now: [("fc.weight", now)])
        if end:
            observer.end()
        return Run(folder, code, 1.0, stdout, b"")


@pytest.fixture
def play(tmp_path):
    state = random.getstate(), np.random.get_state()
    yield Play(tmp_path)
    random.setstate(state[0])
    np.random.set_state(state[1])


def at(number, act):
    """A change of the step with this number."""
    return lambda step, weights, loss: act(weights.copy(), loss) if step == number else (weights, loss)


def one_bit(weights, loss):
    weights.view(np.uint32)[1, 2] ^= 1
    return weights, loss


def test_runs_that_do_the_same_are_equal(play):
    verdict = judge(play.run(), play.run(), play.run())
    assert (verdict.outcome, verdict.difference) == (Outcome.EQUAL, None)
    compared = verdict.compared
    assert (compared.steps, compared.losses, compared.weights) == (3, 3, 4)
    assert compared.random == {"Python": True, "NumPy": True}


def test_one_bit_of_a_weight_is_found_and_shown(play):
    found = judge(play.run(), play.run(), play.run(at(1, one_bit))).difference
    assert (found.step, found.what) == (1, "weight fc.weight[1, 2] (1 of 6 elements differ)")
    assert (found.here, found.there) == ("1.0", "1.0000001")


def test_a_loss_comes_before_the_weights_that_follow_from_it(play):
    def other(weights, loss):
        return one_bit(weights, loss + np.float32(1))

    found = judge(play.run(), play.run(), play.run(at(2, other))).difference
    assert (found.step, found.what) == (2, "loss")
    assert float(found.there) == pytest.approx(float(found.here) + 1)


@pytest.mark.parametrize("draw, name", [(random.random, "Python"), (np.random.rand, "NumPy")])
def test_a_number_that_is_drawn_with_the_agent_only_is_found(play, draw, name):
    def drawing(weights, loss):
        draw()
        return weights, loss

    found = judge(play.run(), play.run(), play.run(at(1, drawing))).difference
    assert (found.step, found.what) == (1, f"random state of {name}")
    assert found.here != found.there


def test_a_generator_that_nobody_has_seeded_is_compared_by_what_is_drawn_from_it(play):
    verdict = judge(*(play.run(seed=False) for _ in range(3)))
    assert verdict.outcome is Outcome.EQUAL
    assert verdict.compared.random == {"Python": False, "NumPy": True}

    def drawing(weights, loss):
        random.random()
        return weights, loss

    runs = [play.run(seed=False), play.run(seed=False), play.run(at(1, drawing), seed=False)]
    found = judge(*runs).difference
    assert (found.step, found.what) == (1, "random state of Python")


def test_a_script_that_differs_by_itself_is_not_the_agents_doing(play):
    verdict = judge(play.run(), play.run(at(1, one_bit)), play.run(at(1, one_bit)))
    assert (verdict.outcome, verdict.difference.step) == (Outcome.NOT_DETERMINISTIC, 1)


def test_what_differs_with_the_agent_before_that_is(play):
    verdict = judge(play.run(), play.run(at(2, one_bit)), play.run(at(1, one_bit)))
    assert (verdict.outcome, verdict.difference.step) == (Outcome.DIFFERENT, 1)


def test_a_step_more_or_less_is_found(play):
    more = judge(play.run(), play.run(), play.run(steps=4)).difference
    assert (more.what, more.step, more.here, more.there) == ("the step itself", 3, "none", "made")
    less = judge(play.run(), play.run(), play.run(steps=2)).difference
    assert (less.step, less.here, less.there) == (2, "made", "none")


def test_a_program_that_is_killed_with_the_agent_is_found(play):
    verdict = judge(play.run(), play.run(), play.run(end=False, code=-9))
    assert verdict.outcome is Outcome.DIFFERENT
    found = judge(play.run(end=False), play.run(end=False), play.run(end=False, code=-9)).difference
    assert (found.what, found.here, found.there) == ("exit code", "0", "ended by SIGKILL")


def test_of_a_program_without_steps_the_lines_tell_whether_it_is_deterministic(play):
    def printing(text):
        return play.run(steps=0, stdout=text)

    verdict = judge(printing(b"1\n"), printing(b"2\n"), printing(b"2\n"))
    assert (verdict.outcome, verdict.difference.what) == (Outcome.NOT_DETERMINISTIC, "line 1 of stdout")
    steps = judge(play.run(stdout=b"1\n"), play.run(stdout=b"2\n"), play.run(stdout=b"3\n"))
    assert (steps.outcome, steps.stdout.varying) == (Outcome.EQUAL, (1,))


def test_a_rank_is_named(play):
    runs = [play.run(name="rank-1"), play.run(name="rank-1"), play.run(at(0, one_bit), name="rank-1")]
    assert judge(*runs).difference.process == "rank 1"


def test_without_the_bytes_digests_are_shown(play, monkeypatch):
    monkeypatch.setattr(observing, "KEPT", 5)
    found = judge(play.run(), play.run(), play.run(at(1, one_bit))).difference
    assert found.what == "weight fc.weight"
    assert found.here.startswith("digest ")
    assert found.here != found.there


def test_a_failure_of_the_observer_is_told_and_ends_it(play):
    plain, again = play.run(), play.run()
    folder = play.folder / "failing"
    folder.mkdir()
    observer = Observer(str(folder / MAIN), 0)
    observer.open()
    observer.look(lambda: 1 / 0, "an update")
    observer.look(lambda: observer.updated(play, lambda _: []), "an update")
    verdict = judge(plain, again, Run(folder, 0, 1.0, b"", b""))
    assert verdict.failures == ["an update (ZeroDivisionError: division by zero)"]
    assert len((folder / (MAIN + STEPS)).read_text().splitlines()) == 1
