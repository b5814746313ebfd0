"""Makers of values that are not finite: who is to blame follows the values, not the order of the operations."""

import numpy as np
import pytest

from smd_agent.framework.made_values import Place
from smd_agent.framework.value_makers import Makers, Operation, Value, kind_of

NAN, INF = np.nan, np.inf
PLACE = Place("/nowhere/train.py", 7, "encoder")


def value(*numbers):
    array = np.array(numbers, np.float32)
    return Value(object(), array)


@pytest.fixture
def makers():
    return Makers()


def operation(name, backward_of=""):
    return Operation(name, lambda: PLACE, backward_of)


def saw(makers, name, given, result, backward_of=""):
    makers.saw(operation(name, backward_of), given, [result])
    return result


def test_what_makes_a_nan_out_of_no_nan_is_the_maker(makers):
    makers.rows = 3
    made = saw(makers, "Log", [value(-1.0, 2.0, 3.0)], value(NAN, 1.0, 1.0))
    loss = saw(makers, "Mean", [made], value(NAN))
    words = "Log in encoder made NaN of values from -1 to 3 (train.py:7); row 0 of the batch"
    assert makers.maker_of(loss.tensor) == words


def test_the_maker_of_an_infinity_is_that_of_the_nan_that_comes_of_it(makers):
    large = saw(makers, "Exp", [value(1e3, 1.0)], value(INF, 2.7))
    loss = saw(makers, "Mul", [large, value(0.0, 0.0)], value(NAN, 0.0))
    assert makers.maker_of(loss.tensor).startswith(
        "Exp in encoder made inf of values from 1 to 1000, of which Mul made"
    )


def test_a_mask_of_infinities_is_blamed_for_nothing(makers):
    mask = saw(makers, "Fill", [], value(-INF, -INF))
    masked = saw(makers, "SelectV2", [mask, value(1.0, 2.0)], value(-INF, 2.0))
    weights = saw(makers, "Softmax", [masked], value(0.0, 1.0))
    loss = saw(makers, "Log", [weights], value(-INF, 0.0))
    assert makers.maker_of(loss.tensor).startswith("Log in encoder made -inf of values from 0 to 1")


def test_where_all_is_masked_what_makes_a_nan_of_it_is_the_maker(makers):
    mask = saw(makers, "Fill", [], value(-INF, -INF))
    masked = saw(makers, "SelectV2", [mask, value(1.0, 2.0)], value(-INF, -INF))
    loss = saw(makers, "Softmax", [masked], value(NAN, NAN))
    assert makers.maker_of(loss.tensor).startswith("Softmax in encoder made NaN of values from -inf to -inf")


def test_a_nan_that_nothing_goes_on_with_is_no_maker(makers):
    saw(makers, "Sqrt", [value(-1.0, 4.0)], value(NAN, 2.0))
    loss = saw(makers, "RealDiv", [value(1.0), value(0.0)], value(INF))
    assert makers.maker_of(loss.tensor).startswith("RealDiv in encoder made inf of values from 1 to 1 and from 0 to 0")


def test_what_comes_from_elsewhere_is_named(makers):
    makers.rows = 2
    batch, weights = value(1.0, NAN), value(INF, 0.0)
    makers.comes(batch, "the batch that the model was given has {}")
    makers.comes(weights, "the weights had {} before: kernel", of_weights=True)
    loss = saw(makers, "MatMul", [batch, value(1.0, 1.0)], value(NAN))
    assert makers.maker_of(loss.tensor) == "the batch that the model was given has NaN in row 1"
    assert not makers.is_of_weights(loss.tensor)
    other = saw(makers, "MatMul", [value(0.0, 1.0), weights], value(NAN))
    assert makers.maker_of(other.tensor) == "the weights had inf before: kernel"
    assert makers.is_of_weights(other.tensor)


def test_what_nobody_has_seen_come_was_given(makers):
    loss = saw(makers, "Sub", [value(1.0, 2.0, NAN)], value(1.0, 2.0, NAN))
    assert makers.maker_of(loss.tensor) == "what Sub in encoder was given has NaN in row 2 (train.py:7)"


def test_an_operation_of_a_backward_pass_says_so(makers):
    gradient = saw(makers, "Reciprocal", [value(0.0)], value(INF), "the gradient of Sqrt")
    assert makers.maker_of(gradient.tensor).startswith("Reciprocal in the gradient of Sqrt in encoder made inf")


def test_what_a_variable_is_given_is_read_from_it(makers):
    handle, read = object(), value(NAN)
    made = saw(makers, "Log", [value(-1.0)], value(NAN))
    makers.goes(made.tensor, handle)
    makers.goes(handle, read.tensor)
    assert makers.maker_of(read.tensor).startswith("Log")


def test_what_an_update_has_written_is_that_of_the_weights(makers):
    handle = object()
    made = saw(makers, "Mul", [value(0.0)], value(NAN), "the gradient of Sqrt")
    makers.goes(made.tensor, handle)
    assert not makers.knows(handle)


def test_another_step_begins_with_nothing(makers):
    loss = saw(makers, "Log", [value(0.0)], value(-INF))
    makers.forget()
    assert makers.maker_of(loss.tensor) == ""


@pytest.mark.parametrize(
    "array, kind",
    [
        (np.array([1.0, -INF, NAN]), "NaN"),
        (np.array([1.0, -INF, INF]), "inf"),
        (np.array([-INF, 2.0], np.float16), "-inf"),
        (np.array([1.0, 2.0]), ""),
        (np.array([1, 2]), ""),
        (np.empty(0), ""),
    ],
)
def test_kinds(array, kind):
    assert kind_of(array) == kind
