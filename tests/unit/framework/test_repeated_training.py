"""A training that is done again: which steps are watched, when the program ends, and what is told of it."""

import dataclasses

import numpy as np
import pytest

from smd_agent.core.requests import TrainingStopped
from smd_agent.formats.replays import Order, replayed_of, text_of
from smd_agent.framework.repeated_training import RepeatedTraining
from smd_agent.framework.value_makers import Operation, Value

ORDER = Order("", "", at=3, until=4)


def place():
    return None


@pytest.fixture
def training(tmp_path):
    return RepeatedTraining(text_of(dataclasses.replace(ORDER, result=str(tmp_path / "result.json"))))


@pytest.fixture
def told(tmp_path):
    return lambda: replayed_of((tmp_path / "result.json").read_text())


def made(training, number, name="Log"):
    """A tensor that an operation has made of a finite one."""
    result = Value(object(), np.array(number))
    training.makers.saw(Operation(name, place), [Value(object(), np.array(1.0))], [result])
    return result.tensor


def test_steps_are_watched_from_the_first_on(training):
    assert [training.watches(step) for step in (0, 2, 3, 4)] == [False, False, True, True]


def test_the_step_that_goes_wrong_ends_the_program(training, told):
    training.step_begins(3)
    training.loss_is(made(training, 1.0), 1.0)
    training.step_ends()
    training.step_begins(4)
    training.loss_is(made(training, np.inf), np.inf)
    assert not training.watches(5)
    with pytest.raises(TrainingStopped) as stopped:
        training.step_ends()
    assert stopped.value.step == 4
    found = told()
    assert (found.reached, found.passed, found.step, found.loss) == (True, True, 4, "inf")
    assert found.maker == "Log in what computes the loss made inf of values from 1 to 1"


def test_the_last_step_ends_the_program_whatever_its_loss_is(training, told):
    training.step_begins(4)
    training.loss_is(made(training, 2.0), 2.0)
    with pytest.raises(TrainingStopped):
        training.step_ends()
    assert (told().loss, told().maker) == ("2.0", "")


def test_gradients_that_spoil_the_weights_are_the_makers_of_the_next_loss(training, told):
    training.step_begins(3)
    training.loss_is(made(training, 1.0), 1.0)
    training.gradients_are([("kernel", made(training, np.inf, "Reciprocal"))])
    training.step_ends()
    training.step_begins(4)
    weights, loss = Value(object(), np.array(np.nan)), Value(object(), np.array(np.nan))
    training.makers.comes(weights, "the weights had {} before: kernel", of_weights=True)
    training.makers.saw(Operation("MatMul", place), [weights], [loss])
    training.loss_is(loss.tensor, np.nan)
    with pytest.raises(TrainingStopped):
        training.step_ends()
    assert told().maker.startswith("the gradients of step 3, whose loss is finite: Reciprocal")
    assert not told().spoilt


def test_weights_that_were_spoilt_before_are_told(training, told):
    training.step_begins(4)
    weights = Value(object(), np.array(np.nan))
    training.makers.comes(weights, "the weights had {} before: kernel", of_weights=True)
    training.loss_is(weights.tensor, np.nan)
    with pytest.raises(TrainingStopped):
        training.step_ends()
    assert (told().spoilt, told().maker) == (True, "the weights had NaN before: kernel")
