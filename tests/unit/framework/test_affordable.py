"""Collections of boosted trainings that nobody asked for by name: which of them are saved, and what is said."""

from __future__ import annotations

import pytest

from smd_agent.core.budget import SHARE
from smd_agent.framework.boosting.affordable import BUDGETS, SECONDS, Affordable


class Clock:
    """A clock that tests set, and what saving took by it."""

    def __init__(self, named=()):
        self.now = self.spent = 0.0
        self.saved, self.noted = [], []
        self.affordable = Affordable(
            {*named}.__contains__, lambda *said: self.noted.append(said), lambda: self.spent, lambda: self.now
        )

    def round(self, number, seconds, part=1.0, known=0.0, collection="trees", pause=0.0):
        """A round in which saving a collection takes so long, after a pause."""
        self.now += pause
        self.affordable.begin_round()
        began = self.now

        def save():
            self.now += seconds
            self.saved.append((collection, number))

        self.affordable.offer(collection, number, part, known, save)
        self.spent += self.now - began

    @property
    def rounds(self):
        """The rounds of which something was saved."""
        return [number for _, number in self.saved]


def test_all_is_saved_where_that_takes_little():
    clock = Clock()
    for number in range(90):
        clock.round(number, 0.01, known=0.01)
    assert clock.rounds == [*range(90)]
    assert clock.affordable.took("trees") == pytest.approx(0.01)


def test_what_has_taken_a_second_is_saved_no_more():
    clock = Clock()
    for number in range(30):
        clock.round(number, 0.1, known=0.1)
    assert clock.spent == pytest.approx(SECONDS, abs=0.11)
    assert clock.noted == [("trees", clock.affordable.too_long)]


def test_in_a_long_training_it_is_a_part_of_the_time():
    clock = Clock()
    for number in range(1000):
        clock.round(number, 0.1, known=0.1, pause=1.0)
    assert clock.spent == pytest.approx(BUDGETS * SHARE * clock.now, abs=0.2)


def test_what_will_take_too_long_is_not_begun():
    clock = Clock()
    clock.round(0, 50.0, known=50.0)
    assert clock.rounds == []
    clock.round(1, 50.0, known=50.0, pause=2600.0)
    assert clock.rounds == [1]


def test_what_takes_most_leaves_time_for_all_else():
    clock = Clock()
    for number in range(20):
        clock.round(number, 0.1, part=0.5, known=0.1, collection="full_shap")
        clock.round(number, 0.01, known=0.01)
    assert {number for name, number in clock.saved if name == "trees"} == {*range(20)}
    assert [number for name, number in clock.saved if name == "full_shap"] == [0, 1, 2, 3]


def test_one_line_says_of_which_rounds_and_by_which_word(capsys):
    clock = Clock()
    clock.affordable.tell()
    assert capsys.readouterr().err == ""
    for number in (0, 10, 20):
        clock.round(number, 1.0, known=9.0 if number else 0.0)
        for name in ("average_shap", "full_shap"):
            clock.round(number, 9.0, known=9.0, collection=name)
    for _ in range(2):
        clock.affordable.tell()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "smd_agent: left out, as it would have taken more than 1 s and 2% of the time: "
        "average_shap, full_shap of 3 saved rounds, 0 to 20; trees of 2 saved rounds, 10 to 20; "
        "asked for by name, as by --save average_shap,full_shap,trees, it is saved"
    )


def test_what_a_failure_took_counts():
    clock = Clock()
    clock.affordable.begin_round()

    def fail():
        clock.now += 3.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        clock.affordable.offer("trees", 0, 1.0, 0.0, fail)
    assert clock.affordable.took("trees") == 3.0
