"""Rounds of updates, with plain objects for optimizers."""

from __future__ import annotations

import threading

import pytest

from smd_agent import guard
from smd_agent.framework.optimizer_turns import LONGEST_TURN, UpdateRounds


class Optimizer:
    """Updates parameters that others may update too."""

    def __init__(self, *parameters):
        self.parameters = set(parameters)


def rounds_of(*called):
    """Rounds of a training in which the models of these parameters are called."""
    return UpdateRounds(
        lambda candidate, updating: (
            candidate.parameters.isdisjoint(updating.parameters) and bool(candidate.parameters & set(called))
        )
    )


def play(rounds, optimizers, order):
    """Whether each update, by the number of its optimizer, ended a round."""
    return [rounds.updated(optimizers[int(number)]) for number in order]


def ends(rounds, optimizers, order):
    return "".join(
        number + "|" * over for number, over in zip(order, play(rounds, optimizers, order), strict=True)
    ).rstrip("|")


def made(rounds, *optimizers):
    for optimizer in optimizers:
        rounds.add(optimizer)
    return list(optimizers)


def test_one_optimizer_ends_a_round_with_every_update():
    rounds = rounds_of("a")
    optimizers = made(rounds, Optimizer("a"))
    assert ends(rounds, optimizers, "000") == "0|0|0"
    assert rounds.only == id(optimizers[0])


def test_one_that_nobody_has_told_of_is_waited_for_from_its_first_update_on():
    rounds = rounds_of("a", "b")
    optimizers = [Optimizer("a"), Optimizer("b")]
    assert ends(rounds, optimizers, "0001000100010001") == "0|0|0|1|0001|0001|0001"


@pytest.mark.parametrize("turns", ["01", "10", "000001", "012"])
def test_optimizers_that_take_turns_end_it_together(turns):
    rounds = rounds_of("a", "b", "c")
    optimizers = made(rounds, *(Optimizer(name) for name in "abc"[: len(set(turns))]))
    assert ends(rounds, optimizers, turns * 3) == "|".join([turns] * 3)


def test_one_whose_model_was_not_called_yet_is_not_waited_for():
    rounds = rounds_of("a")
    optimizers = made(rounds, Optimizer("a"), Optimizer("b"))
    assert ends(rounds, optimizers, "00") == "0|0"


def test_one_with_the_same_parameters_is_another_way_to_train_them():
    rounds = rounds_of("a", "b")
    optimizers = made(rounds, Optimizer("a"), Optimizer("a", "b"))
    assert ends(rounds, optimizers, "0011") == "0|0|1|1"


def test_one_that_never_comes_is_waited_for_during_so_many_updates():
    rounds = rounds_of("a", "b")
    optimizers = made(rounds, Optimizer("a"), Optimizer("b"))
    over = play(rounds, optimizers, "0" * (LONGEST_TURN + 2))
    assert over == [False] * (LONGEST_TURN - 1) + [True] * 3


def test_one_that_stays_away_longer_than_any_turn_is_left_and_joins_again():
    rounds = rounds_of("a", "b")
    optimizers = made(rounds, Optimizer("a"), Optimizer("b"))
    assert ends(rounds, optimizers, "0101000101") == "01|01|00|0|1|01"


def test_one_that_comes_late_takes_turns_from_then_on():
    rounds = rounds_of("a")
    optimizers = made(rounds, Optimizer("a"), Optimizer("b"))
    assert ends(rounds, optimizers, "00010101") == "0|0|0|1|01|01"


@pytest.mark.parametrize(
    "order, said",
    [
        ("0011" * 10, True),
        ("001122" * 10, True),
        ("00001" * 10, False),
        ("012" * 10, False),
        ("0" * 90 + "1" * 90, False),
    ],
)
def test_uneven_turns_are_said_once(capsys, order, said):
    guard.lines.said.clear()
    rounds = rounds_of("a", "b", "c")
    play(rounds, made(rounds, *map(Optimizer, "abc"[: len({*order})])), order)
    lines = capsys.readouterr().err.splitlines()
    assert ["optimizers take uneven turns" in line for line in lines] == [True] * said


def test_a_first_round_goes_on_with_what_is_called_after_it():
    rounds = rounds_of()
    optimizers = made(rounds, Optimizer("a"), Optimizer("a", "b"), Optimizer("a", "c"))
    late = iter("bc")
    for number in "012":
        assert play(rounds, optimizers, number) == [True]
        name = next(late, None)
        assert rounds.go_on(lambda optimizer, name=name: name in optimizer.parameters) == (name is not None)
    assert ends(rounds, optimizers, "012012") == "012|012"


def test_no_other_round_goes_on():
    rounds = rounds_of()
    optimizers = made(rounds, Optimizer("a"), Optimizer("b"))
    play(rounds, optimizers, "00")
    # The optimizer has updated before.
    assert not rounds.go_on(lambda optimizer: "b" in optimizer.parameters)
    optimizers += made(rounds, Optimizer("c"), Optimizer("d"))
    play(rounds, optimizers, "2")
    optimizers += made(rounds, Optimizer("e"))
    # It was made after the update.
    assert not rounds.go_on(lambda optimizer: "e" in optimizer.parameters)
    assert rounds.go_on(lambda optimizer: "d" in optimizer.parameters)


def test_a_new_training_does_not_wait_for_the_one_before():
    rounds = rounds_of("a", "b")
    first = made(rounds, Optimizer("a"))
    assert play(rounds, first, "00") == [True, True]
    second = made(rounds, Optimizer("b"))
    assert play(rounds, second, "00") == [True, True]
    first.clear()
    assert rounds.has_optimizer
    second.clear()
    assert not rounds.has_optimizer


def test_trainings_in_two_threads_do_not_wait_for_each_other():
    rounds = rounds_of("a", "b")
    mine = made(rounds, Optimizer("a"))
    found = []

    def train():
        others = made(rounds, Optimizer("b"))
        found.extend(play(rounds, others, "00"))

    assert play(rounds, mine, "0") == [True]
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert found == [True, True]
    assert play(rounds, mine, "0") == [True]
