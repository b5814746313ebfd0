"""Variables of other functions, which are none the wiser."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from smd_agent.interpreter.frame_locals import locals_of


class Thing:
    pass


def look(found):
    found.append(locals_of(sys._getframe(1)))


def test_variables_of_a_function_are_found():
    found = []
    first, second = 1, Thing()
    look(found)
    assert found[0]["first"] == first
    assert found[0]["second"] is second


def test_nothing_is_held_by_its_frame():
    found = []

    def run():
        thing = Thing()
        gone = weakref.ref(thing)
        look(found)
        found.clear()
        del thing
        assert gone() is None

    run()


@pytest.mark.parametrize("ask", ["locals()", "vars()", "eval('locals()')"])
def test_what_the_program_has_of_its_variables_stays(ask):
    program = f"""
def train(rate=0.1, steps=3):
    settings = {ask}
    batch = object()
    look(found)
    return settings
"""
    found = []
    names = {"look": look, "found": found}
    exec(program, names)
    settings = names["train"]()
    assert {**settings, "settings": None} == {"rate": 0.1, "steps": 3, "settings": None}


def test_what_another_has_of_the_variables_is_not_emptied():
    kept = []

    def train(rate=0.1):
        kept.append(sys._getframe().f_locals)
        look([])
        return rate

    train()
    assert kept[0]["rate"] == 0.1


def test_a_module_keeps_its_own():
    names = {"look": look, "found": []}
    exec("x = 1\nlook(found)\ny = x", names)
    assert (names["x"], names["y"]) == (1, 1)
    assert names["found"][0]["x"] == 1


def test_variables_of_functions_that_an_error_has_left():
    def train(rate):
        raise ValueError(rate)

    try:
        train(0.25)
    except ValueError as error:
        traceback = error.__traceback__
    frame = traceback.tb_next.tb_frame
    assert locals_of(frame) == {"rate": 0.25}
    gc.collect()
