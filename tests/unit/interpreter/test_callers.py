"""Frames of the functions that are running."""

from __future__ import annotations

import itertools

from smd_agent.interpreter.callers import callers, first_argument, place


def asks():
    return [frame.f_code.co_name for frame in callers()]


def asks_in_an_expression():
    return next(name for name in (frame.f_code.co_name for frame in callers()))


def test_the_nearest_caller_comes_first():
    def outer():
        return asks()

    me = "test_the_nearest_caller_comes_first"
    assert asks()[0] == me
    assert outer()[:2] == ["outer", me]


def test_an_expression_around_it_is_no_caller():
    assert asks_in_an_expression() == "test_an_expression_around_it_is_no_caller"


def test_a_method_has_its_object_as_first_argument():
    def seen():
        return first_argument(next(callers()))

    class Object:
        def method(self, other):
            return seen() is self

        def any_arguments(*args):
            return seen()

        def nothing():
            return seen()

        in_its_body = seen()

        def in_a_cell(self):
            return (lambda: self) and seen() is self

    one = Object()
    assert one.method(2)
    assert one.any_arguments() == (one,)
    assert Object.nothing() is None
    assert Object.in_its_body is None
    assert one.in_a_cell()


def test_the_same_place_has_the_same_number():
    def where(most):
        return place(callers(), most)

    numbers = [where(8) for _ in range(3)]
    assert len({*numbers}) == 1
    assert where(8) not in numbers
    # What is farther away does not count.
    near = [call() for call in [lambda: where(1)] * 2]
    far = list(itertools.starmap(lambda: where(1), [()] * 2))
    assert len({*near}) == len({*far}) == 1
