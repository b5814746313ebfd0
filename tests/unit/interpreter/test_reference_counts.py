"""Counts of references to an object."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

from smd_agent.interpreter.reference_counts import has_only_a_cycle, references


class Object:
    pass


def test_one_holder_more_is_one_reference_more():
    one, other = Object(), Object()
    before = references(one)
    assert before == references(other)
    held = [one]
    after = references(one)
    assert held
    assert after == before + 1


def test_an_object_that_only_holds_itself_is_told_from_one_that_the_program_holds():
    one = Object()
    one.scope = SimpleNamespace(block=one)
    reference = weakref.ref(one)
    assert not has_only_a_cycle(reference)
    del one
    assert has_only_a_cycle(reference)
    again = reference()
    assert not has_only_a_cycle(reference)
    again.other = again
    del again
    assert not has_only_a_cycle(reference)
    assert not has_only_a_cycle(lambda: None)
