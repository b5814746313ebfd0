"""The contract of every patch: whoever wraps ours, in whatever order things end, keeps what is theirs.

``contract`` is run here over plain owners; the test files of the frameworks run it over what is really replaced.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import types
import weakref

import pytest

from smd_agent.framework.replaced_functions import (
    Patch,
    Until,
    is_ours,
    is_replaced,
    replace,
    replace_everywhere,
    replaced,
    standing,
    undo,
)


def in_module():
    owner = types.ModuleType("library")
    owner.function = lambda *args: ("original", *args)
    return owner, lambda *args: owner.function(*args)


def in_class():
    class Owner:
        def function(self, *args):
            return ("original", *args)

    return Owner, lambda *args: Owner().function(*args)


def in_base():
    class Base:
        def function(self, *args):
            return ("original", *args)

    class Owner(Base):
        pass

    return Owner, lambda *args: Owner().function(*args)


def static():
    class Owner:
        @staticmethod
        def function(*args):
            return ("original", *args)

    return Owner, lambda *args: Owner().function(*args)


OWNERS = [in_module, in_class, in_base, static]


def marking(mark):
    """Make a replacement that adds a mark to the result."""
    return lambda original: lambda *args: (mark, *original(*args))


def patch(owner, mark):
    return Patch(owner, "function", marking(mark), why=mark)


def wrap(owner, mark, alike):
    """Wrap what is there now, as a program would; ``alike``: with functools.wraps."""
    original = owner.function

    def wrapper(*args):
        return (mark, *original(*args))

    owner.function = functools.wraps(original)(wrapper) if alike else wrapper
    return owner.function


@pytest.fixture(params=OWNERS)
def owned(request):
    owner, call = request.param()
    yield owner, call
    # Nothing of ours is left in the register.
    assert [entry for entry in replaced() if entry.owner is owner] == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_patches_end_in_any_order(owned, order):
    owner, call = owned
    before = vars(owner).get("function")
    patches = [patch(owner, mark) for mark in "abc"]
    assert call(1) == ("c", "b", "a", "original", 1)
    left = ["c", "b", "a"]
    for number in order:
        patches[number].remove()
        left.remove("abc"[number])
        assert call(1) == (*left, "original", 1)
    assert vars(owner).get("function") is before


@pytest.mark.parametrize("order", list(itertools.permutations(range(2))))
@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_wrapper_of_the_programs_stays_where_it_is(order, alike, at):
    owner, call = in_module()
    patches, chain, theirs = [], [], None
    for number in range(3):
        if number == at:
            theirs = wrap(owner, "theirs", alike)
            chain.insert(0, "theirs")
        if number < 2:
            patches.append(patch(owner, "ab"[number]))
            chain.insert(0, "ab"[number])
    assert call() == (*chain, "original")
    for number in order:
        patches[number].remove()
        chain.remove("ab"[number])
        assert call() == (*chain, "original")
    assert owner.function is theirs
    # One that begins now is on top, and goes again.
    later = patch(owner, "later")
    assert call() == ("later", "theirs", "original")
    later.remove()
    assert owner.function is theirs


@pytest.mark.parametrize("alike", [True, False])
def test_what_a_program_takes_off_again_leaves_the_original(alike):
    owner, call = in_module()
    original = owner.function
    ours = patch(owner, "ours")
    covered = owner.function
    wrap(owner, "theirs", alike)
    ours.remove()
    owner.function = covered
    assert call() == ("original",)
    assert owner.function is original


def test_a_covered_patch_lets_go_of_what_it_held():
    class Step:
        def around(self, original):
            return lambda *args: (self, original(*args))

    owner, call = in_module()
    steps = [Step()]
    gone = weakref.ref(steps[0])
    ours = Patch(owner, "function", steps[0].around, why="a step")
    wrap(owner, "theirs", alike=True)
    ours.remove()
    steps.clear()
    gc.collect()
    assert gone() is None
    assert call() == ("theirs", "original")


def test_removing_twice_is_harmless(owned):
    owner, call = owned
    first, second = patch(owner, "first"), patch(owner, "second")
    second.remove()
    second.remove()
    assert call() == ("first", "original")
    first.remove()
    first.remove()
    second.remove()
    assert call() == ("original",)


def test_an_error_of_the_original_passes(owned):
    owner, _ = owned

    def fail(*args):
        raise KeyError("the program's")

    owner.function = staticmethod(fail) if isinstance(owner, type) else fail
    ours = patch(owner, "ours")
    with pytest.raises(KeyError, match="the program's"):
        owner.function()
    ours.remove()
    with pytest.raises(KeyError, match="the program's"):
        owner.function()


def test_a_patch_looks_like_the_original():
    owner, _ = in_module()

    def function(a, b=1):
        """What it does."""

    function.mark = object()
    owner.function = function
    ours = patch(owner, "ours")
    assert (owner.function.__doc__, owner.function.__wrapped__, owner.function.mark) == (
        "What it does.",
        function,
        function.mark,
    )
    ours.remove()


def test_ours_are_known_by_identity():
    owner, _ = in_module()
    ours = patch(owner, "ours")
    assert is_ours(owner.function)
    wrap(owner, "theirs", alike=True)
    assert not is_ours(vars(owner)["function"])
    # The function itself is replaced all the same, until ours ends.
    assert is_replaced(owner, "function")
    assert not is_replaced(owner, "other")
    ours.remove()
    assert not is_replaced(owner, "function")


def test_the_register_tells_what_is_replaced_why_and_until_when():
    owner, call = in_module()
    replace(owner, "function", marking("for good"), why="steps are counted")
    ours = Patch(owner, "function", marking("for now"), why="losses are saved", until=Until.MODEL_IS_FOUND)
    mine = [entry for entry in replaced() if entry.owner is owner]
    assert [(entry.path, entry.why, entry.until) for entry in mine] == [
        ("library.function", "steps are counted", Until.PROCESS_ENDS),
        ("library.function", "losses are saved", Until.MODEL_IS_FOUND),
    ]
    assert call() == ("for now", "for good", "original")
    ours.remove()
    assert [entry.until for entry in replaced() if entry.owner is owner] == [Until.PROCESS_ENDS]
    assert call() == ("for good", "original")


def test_what_is_undone_stands_under_all_its_names_again(monkeypatch):
    def function() -> str:
        return "original"

    modules = [types.ModuleType(name) for name in ("one_module", "another_module")]
    for module in modules:
        module.function = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
    before = standing()
    replace_everywhere(function, lambda original: lambda: f"replaced {original()}", why="a test")
    assert [module.function() for module in modules] == ["replaced original"] * 2
    undo(before)
    assert [module.function for module in modules] == [function] * 2
    assert standing() == before


def test_a_replacement_that_fails_lets_somebody_do_what_it_would_have_done():
    owner = type("Owner", (), {"grow": lambda self, by: by})
    told = []

    def make(original):
        def grow(self, by):
            result = original(self, by)
            [].missing  # noqa: B018
            return result

        return grow

    replace(owner, "grow", make, why="a test", then=told.append)
    one = owner()
    assert one.grow(2) == 2
    assert told == [one]
